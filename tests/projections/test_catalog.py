"""The static assembly for detached readers: R312, R313."""

from contextlib import ExitStack
from importlib.metadata import entry_points

from everfold.plugins.plugin import scope
from everfold.projections.catalog import SHIPPED, detached_composition, uncovered_types
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.session.composition import Composition


def test_every_type_that_needs_an_interpreter_has_one_r313() -> None:
    assert uncovered_types() == frozenset()


def test_each_call_gives_a_composition_of_its_own_r108() -> None:
    first, second = detached_composition(), detached_composition()

    assert first is not second
    assert (
        first.definitions["image/offload"] is second.definitions["image/offload"] is IMAGE_OFFLOAD
    )
    assert first.identity() == second.identity()


def test_shipped_plugins_come_by_the_door_of_all_plugins() -> None:
    declared = {entry.name: entry.load() for entry in entry_points(group="everfold.plugins")}

    assert all(declared[plugin.name] is plugin for plugin in SHIPPED)


def test_a_host_that_mounts_all_plugins_folds_like_the_catalog() -> None:
    composition = Composition()

    with ExitStack() as mounted:
        for plugin in SHIPPED:
            mounted.enter_context(scope(composition, plugin))
        identity = composition.identity()

    assert identity == detached_composition().identity()
