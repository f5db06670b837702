"""Choosing the oldest images of a conversation to be omitted (group P)."""

from collections.abc import Iterable, Sequence

from everfold.llm.images import retained
from everfold.projections.image_offload.projection import INPUT_TYPES, TYPE
from everfold.session.deciding import AppendEvent
from everfold.session.derive import derive_event_message
from everfold.session.frozen import Json
from everfold.session.session import Session
from everfold.session.surface import Surface


def oldest_images(
    session: Session, count: int, *, selection: Sequence[int] | None = None
) -> AppendEvent | None:
    """Return the wish to omit the `count` oldest retained input images, None if none is left.

    Args:
        count: how many; fewer are taken if fewer are left (R232), none for 0 (R233).
        selection: the seqs to choose from, in this order; the current nodes if None (R228, R235).

    Raises:
        ProjectionChangedError: the interpreters in force are not those of this history (R237).
    """
    nodes = session.nodes
    targets = _choose(session.state.surface, nodes if selection is None else selection, count)
    return AppendEvent(TYPE, {"targets": targets}) if targets else None


def _choose(surface: Surface, seqs: Iterable[int], count: int) -> list[Json]:
    targets: list[Json] = []
    for seq in seqs:
        if count <= 0:
            break
        indexes = retained_images(surface, seq)[:count]
        if indexes:
            targets.append({"seq": seq, "imageIndexes": indexes})
            count -= len(indexes)
    return targets


def retained_images(surface: Surface, seq: int) -> list[int]:
    """Return the indexes of the input images that a node still shows (R229, R230)."""
    event = surface.events.find(seq)
    if event is None or event.type not in INPUT_TYPES:
        return []
    message = derive_event_message(event, surface.messages)
    return retained(message["content"]) if message is not None else []
