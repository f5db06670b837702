"""Following a surface by prices alone: what messages and decisions about images do to it."""

from collections.abc import Callable

from everfold.projections.token_meter.surface_prices import Node, SurfacePrices
from everfold.session.derive import message_of
from everfold.session.events import EventLike
from everfold.session.vocabulary import MESSAGE_TYPES

MARKS = {"image/offload": True, "image/bring-back": False}
"""The events that mark images of nodes: omitted, or shown again."""

SURFACE_TYPES = MESSAGE_TYPES | MARKS.keys()
"""The events that change a priced surface."""

KindOf = Callable[[EventLike], str]
"""Says what kind of node a message-producing event becomes."""


def type_of_event(event: EventLike) -> str:
    """Return the event's own type as the kind of its node."""
    return event.type


def covered_by(event: EventLike) -> tuple[int, int] | None:
    """Return the seqs between which an event hides nodes, None if it hides none."""
    marker = None if event.is_plain_append else event.surface_op
    if not isinstance(marker, dict):
        return None
    return int(marker["startSeq"]), int(marker["endSeq"])


def surface_after(
    surface: SurfacePrices, event: EventLike, kind_of: KindOf = type_of_event
) -> SurfacePrices:
    """Return the surface after one of the `SURFACE_TYPES`; after any other event it is the same.

    Raises:
        MeterError: the event does not fit the surface (R306).
    """
    if event.type in MARKS:
        return _marked(surface, event)
    if event.type not in MESSAGE_TYPES:
        return surface
    node = Node.of(event.seq, kind_of(event), message_of(event))
    covered = covered_by(event)
    return surface.appended(node) if covered is None else surface.replaced(*covered, node)


def _marked(surface: SurfacePrices, event: EventLike) -> SurfacePrices:
    for target in event.data["targets"]:
        indexes = {int(index) for index in target["imageIndexes"]}
        surface = surface.marked(int(target["seq"]), indexes, omitted=MARKS[event.type])
    return surface
