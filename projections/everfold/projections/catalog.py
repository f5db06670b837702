"""The static assembly for detached readers: every shipped interpreter, no listener (R312)."""

from everfold.plugins.plugin import Plugin
from everfold.projections.compaction.plugin import plugin as compaction
from everfold.projections.image_offload.plugin import plugin as image_offload
from everfold.projections.read_models.plugin import plugin as read_models
from everfold.projections.tool_result_pruner.plugin import plugin as tool_result_pruner
from everfold.session.composition import Composition
from everfold.session.vocabulary import CORE

SHIPPED: tuple[Plugin, ...] = (compaction, image_offload, read_models, tool_result_pruner)
"""The plugins that come with everfold."""


def detached_composition() -> Composition:
    """Return a fresh composition of all shipped interpreters, for readers without a host."""
    composition = Composition()
    for plugin in SHIPPED:
        composition.declare(plugin.event_types)
        for projection in plugin.projections:
            composition.register(projection)
    return composition


def uncovered_types() -> frozenset[str]:
    """Return the core types that need an interpreter and have none here; empty, or a defect (R313)."""
    return CORE.inventory - detached_composition().definitions.keys()
