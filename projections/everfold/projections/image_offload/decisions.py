"""Explicit decisions about images: omit chosen ones, bring omitted ones back; and the list of all of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from everfold.llm.images import images, is_omitted
from everfold.projections.image_offload import bring_back as bringing
from everfold.projections.image_offload import projection as omission
from everfold.session.access import SessionAccess
from everfold.session.deciding import AppendEvent
from everfold.session.derive import derive_event_message, message_of
from everfold.session.events import EventLike, Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session

State = Literal["retained", "omitted", "output"]

DECISIONS = (omission.TYPE, bringing.TYPE)
"""The event types that say which images are shown."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One image on the surface.

    Attributes:
        seq: the node that holds it.
        index: its place among the images of that message, from 0.
        attachment: what the image block refers to.
        state: `output` is an image that a model made; it can never be omitted.
        decided_by: the event that omitted it, or brought it back last; the node itself if its
            stored message carries the mark; None if nobody decided anything.
    """

    seq: int
    index: int
    attachment: Mapping[str, Json]
    state: State
    decided_by: int | None


def omit(access: SessionAccess, chosen: Mapping[int, Sequence[int]]) -> Recorded:
    """Omit chosen images from now on, as one logged decision.

    Args:
        chosen: image indexes by seq of the node.

    Raises:
        OffloadPayloadError, OffloadTargetError, OffloadIndexError: one cannot be omitted; nothing
            changed.
    """
    return _decide(access, omission.TYPE, chosen)


def bring_back(access: SessionAccess, chosen: Mapping[int, Sequence[int]]) -> Recorded:
    """Show omitted images again from now on, as one logged decision (V6).

    Args:
        chosen: image indexes by seq of the node.

    Raises:
        OffloadPayloadError, OffloadTargetError, OffloadIndexError: one is not omitted; nothing
            changed.
    """
    return _decide(access, bringing.TYPE, chosen)


def _decide(access: SessionAccess, type_: str, chosen: Mapping[int, Sequence[int]]) -> Recorded:
    targets = [{"seq": seq, "imageIndexes": _in_order(chosen[seq])} for seq in chosen]
    access.view()
    return access.append((AppendEvent(type_, {"targets": targets}),))[0]


def _in_order(indexes: Sequence[int]) -> Json:
    try:
        return sorted(indexes)
    except TypeError:
        # No list, or not of numbers: the event is refused, and the refusal says why.
        return indexes


def occurrences(session: Session, log: Iterable[EventLike]) -> list[Occurrence]:
    """Return every image on the surface, in surface order.

    Args:
        log: the session's events, or at least its `DECISIONS`.
    """
    deciders = _deciders(log)
    return [found for seq in session.nodes for found in _of_node(session, seq, deciders)]


def _deciders(log: Iterable[EventLike]) -> dict[tuple[int, int], int]:
    deciders: dict[tuple[int, int], int] = {}
    for event in log:
        if event.type in DECISIONS:
            for target in event.data["targets"]:
                for index in target["imageIndexes"]:
                    deciders[int(target["seq"]), int(index)] = event.seq
    return deciders


def _of_node(
    session: Session, seq: int, deciders: Mapping[tuple[int, int], int]
) -> Iterable[Occurrence]:
    event = session.event(seq)
    message = None if event is None else derive_event_message(event, session.state.surface.messages)
    if event is None or message is None:
        return
    is_input = event.type in omission.INPUT_TYPES
    stored = list(images((message_of(event) or message)["content"]))
    for index, image in enumerate(images(message["content"])):
        by = deciders.get((seq, index))
        if by is None and is_omitted(stored[index]):
            by = seq
        state: State = "output" if not is_input else _state(image)
        yield Occurrence(seq, index, image.get("attachment", {}), state, by)


def _state(image: Mapping[str, Json]) -> State:
    return "omitted" if is_omitted(image) else "retained"
