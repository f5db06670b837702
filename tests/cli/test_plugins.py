"""Plugins come by entry points, all by one door; one that fails is named and stops the start."""

import json
import textwrap
from pathlib import Path

import pytest

from everfold.host.opening import open_sessions
from everfold.host.plugins import find_plugins, registered
from everfold.plugins.plugin import Plugin, PluginError
from everfold.projections.image_offload.plugin import plugin as image_offload
from everfold.session.deciding import AppendEvent
from everfold.session.errors import ProjectionDuplicateError, StoreReadOnlyError, UnknownEventError
from everfold.session.vocabulary import EventType
from tests.cli.programs import run_process

TIDES = """
from everfold.plugins.plugin import Plugin
from everfold.session.vocabulary import EventType
plugin = Plugin("tides", event_types=(EventType("tide/measured"),), summary="Measures tides.")
"""
SECOND_OWNER = """
from everfold.plugins.plugin import Plugin
from everfold.session.projection import MessageProjection
owned = MessageProjection("image/offload", lambda event, history: {}, plugin="tides")
plugin = Plugin("tides", projections=(owned,))
"""


def install(folder: Path, code: str, *, package: str = "tides", name: str = "tides") -> Path:
    """Put a package with one plugin into a folder, as an installer would."""
    module = f"{package}_module"
    (folder / f"{module}.py").write_text(textwrap.dedent(code))
    info = folder / f"{package}-3.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 3.1\n")
    (info / "entry_points.txt").write_text(f"[everfold.plugins]\n{name} = {module}:plugin\n")
    return folder


def test_built_in_plugins_come_by_the_same_door() -> None:
    (found,) = find_plugins(["image-offload"])

    assert found.plugin is image_offload
    assert found.distribution == "everfold"
    assert found.source == "everfold.projections.image_offload.plugin:plugin"


def test_a_plugin_that_is_not_installed_is_named() -> None:
    with pytest.raises(PluginError, match=r"'tides' is not installed; installed are: .*image-off"):
        find_plugins(["image-offload", "tides"])


def test_an_installed_plugin_is_in_force(tmp_path: Path, sqlite_url: str) -> None:
    install(tmp_path, TIDES)

    outcome = run_process("plugins", "--json", env={"PYTHONPATH": str(tmp_path)})

    names = {each["name"]: each for each in json.loads(outcome.out)["plugins"]}
    assert names.keys() >= {"image-offload", "tides"}
    assert names["tides"] == {
        "name": "tides",
        "summary": "Measures tides.",
        "projections": [],
        "eventTypes": ["tide/measured"],
        "distribution": "tides",
        "version": "3.1",
        "source": "tides_module:plugin",
    }


def test_plugins_are_listed_for_people(tmp_path: Path) -> None:
    outcome = run_process("plugins")

    assert outcome.out.splitlines()[0].split() == ["NAME", "EVENT", "TYPES", "VERSION", "SOURCE"]
    assert "image-offload" in outcome.out
    assert "image/offload" in outcome.out


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError"),
        ("raise RuntimeError('high water')", "cannot be loaded: RuntimeError: high water"),
        ("something = 1", "cannot be loaded: AttributeError"),
        ("plugin = 7", "is int, not an everfold Plugin"),
        (TIDES.replace('"tides"', '"ebb"'), "calls itself 'ebb'"),
        (SECOND_OWNER, "'image/offload' is owned by plugin 'image-offload'"),
    ],
)
def test_a_plugin_that_fails_is_named_and_stops_the_start(
    tmp_path: Path, quay_file: str, code: str, told: str
) -> None:
    install(tmp_path, code)
    path = {"PYTHONPATH": str(tmp_path)}

    for command in (("plugins",), ("show", "quay", "--store", quay_file)):
        outcome = run_process(*command, env=path)
        assert (outcome.status, outcome.out) == (1, "")
        assert "tides" in outcome.err
        assert told in outcome.err
        assert "Traceback" not in outcome.err


def test_a_log_can_be_listed_and_printed_though_a_plugin_fails(
    tmp_path: Path, quay_file: str
) -> None:
    install(tmp_path, "import no_such_module")
    path = {"PYTHONPATH": str(tmp_path)}

    statuses = [
        run_process(*command, "--store", quay_file, env=path).status
        for command in (("list",), ("log", "quay"), ("export", "quay"))
    ]

    assert statuses == [0, 0, 0]


def test_two_packages_with_one_plugin_name_are_refused(tmp_path: Path) -> None:
    install(tmp_path, TIDES)
    install(tmp_path, TIDES, package="other")

    outcome = run_process("plugins", env={"PYTHONPATH": str(tmp_path)})

    assert outcome.status == 1
    assert "plugin 'tides' is there twice" in outcome.err


def test_leaving_the_block_unregisters_every_plugin() -> None:
    with registered([image_offload]) as composition:
        inside = dict(composition.definitions)

    assert "image/offload" in inside
    assert dict(composition.definitions) == {}


def test_a_plugin_that_cannot_be_registered_leaves_nothing_registered() -> None:
    owned = image_offload.projections[0]
    with (
        pytest.raises(ProjectionDuplicateError, match="image-offload"),
        registered([image_offload, Plugin("image-offload", (owned,))]),
    ):
        raise AssertionError("the block must not be entered")


def test_open_sessions_uses_the_plugins_it_is_given(sqlite_url: str) -> None:
    tides = Plugin("tides", event_types=(EventType("tide/measured"),))
    wish = (AppendEvent("tide/measured", {"metres": 3}),)
    with open_sessions(sqlite_url, plugins=[tides]) as sessions:
        sessions.create("bay")
        stored = sessions.append_batch("bay", wish)

    with open_sessions(sqlite_url) as sessions, pytest.raises(UnknownEventError):
        sessions.load("bay")
    assert [event.type for event in stored] == ["tide/measured"]


def test_open_sessions_for_reading_writes_nothing(sqlite_url: str) -> None:
    with open_sessions(sqlite_url) as sessions:
        sessions.create("bay")

    with (
        open_sessions(sqlite_url, read_only=True, snapshot_every=1) as sessions,
        pytest.raises(StoreReadOnlyError),
    ):
        sessions.create("second")
