"""Folds without a session: over a list of events, or over a loaded part of a log (groups D, M, W).

The definitions come as arguments; nothing is looked up anywhere else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from everfold.session.composition import Composition
from everfold.session.derive import derive_event_message
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.surface import Hide, Replacement, Surface, SurfaceFold


@dataclass(frozen=True, slots=True)
class FoldResult:
    """What a list of events shows the model (R71).

    Attributes:
        surface: nodes, projected messages and generations.
        replacements: those that took place, in log order.
    """

    surface: Surface
    replacements: tuple[Replacement, ...]

    def messages(self) -> list[tuple[int, Json]]:
        """Return seq and message of each node that gives one, in surface order."""
        return messages_of(self.surface)


def fold_surface(
    events: Iterable[EventLike], composition: Composition, *, base_seq: int = 0
) -> FoldResult:
    """Fold events from nothing, by the surface rules and the projections alone (R23, R47).

    Payloads, message shapes and the vocabulary are not checked: that is the doors' task.

    Args:
        base_seq: seq of the first event; a window of a log does not start at 0 (R182).

    Raises:
        SessionError: the first bad event's refusal; there is no partial result (R73).
    """
    fold = SurfaceFold(Surface.empty(base_seq), composition)
    replacements: list[Replacement] = []
    for event in events:
        plan = fold.plan(event)
        fold.apply(event, plan)
        if isinstance(plan, Hide):
            replacements.append(plan.replacement)
    return FoldResult(fold.surface(), tuple(replacements))


def messages_of(surface: Surface) -> list[tuple[int, Json]]:
    """Return seq and message of each node of a surface that gives one, in surface order."""
    return _derived(surface, surface.messages)


def original_messages(surface: Surface) -> Sequence[tuple[int, Json]]:
    """Return what people saw on these nodes: the stored messages, without projections (R227)."""
    return _derived(surface, {})


def _derived(surface: Surface, projected: Mapping[int, Json]) -> list[tuple[int, Json]]:
    events = surface.events
    events.prefetch(surface.nodes)
    pairs = ((seq, derive_event_message(events.node(seq), projected)) for seq in surface.nodes)
    return [(seq, message) for seq, message in pairs if message is not None]
