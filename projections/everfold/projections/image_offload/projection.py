"""The interpreter of `image/offload`: checks the whole payload, then marks the named occurrences."""

from collections.abc import Mapping, Sequence

from everfold.llm.images import images, is_omitted, marked
from everfold.projections.image_offload.errors import (
    OffloadIndexError,
    OffloadPayloadError,
    OffloadTargetError,
)
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.lossless import natural
from everfold.session.projection import History, MessageProjection, message_at

TYPE = "image/offload"
PLUGIN = "image-offload"
INPUT_TYPES = frozenset(("user/message", "tool/result"))
"""The events whose images are input; images that a model made are never omitted (R211, R229)."""


def project(event: EventLike, history: History) -> Mapping[int, Json]:
    """Return the messages in which the event omits images (R218).

    Raises:
        OffloadPayloadError, OffloadTargetError, OffloadIndexError: one target is wrong, so the
            event is refused whole (R93, R207).
    """
    updates: dict[int, Json] = {}
    for target in _targets(event):
        seq, indexes = _target(target, event)
        if seq in updates:
            raise OffloadTargetError(f"seq {seq} is a target twice", seq=event.seq)
        updates[seq] = _omit(seq, indexes, event, history)
    return updates


def mark_message(message: Mapping[str, Json], indexes: Sequence[Json]) -> Json:
    """Return a copy of a message with the image occurrences at `indexes` omitted.

    Raises:
        OffloadIndexError: an index is not whole, not increasing, beyond the images, or
            names an omitted occurrence.
    """
    return _mark(message, _checked(indexes, None), None)


def _targets(event: EventLike) -> list[Json]:
    data = event.data
    targets = data.get("targets") if isinstance(data, dict) and data.keys() == {"targets"} else None
    if not isinstance(targets, list) or not targets:
        raise OffloadPayloadError(
            f"{TYPE} at seq {event.seq}: data is not one non-empty list `targets`", seq=event.seq
        )
    return targets


def _target(target: Json, event: EventLike) -> tuple[int, list[Json]]:
    if not isinstance(target, dict) or target.keys() != {"seq", "imageIndexes"}:
        raise OffloadPayloadError(
            f"{TYPE} at seq {event.seq}: target {target!r} is not an object of seq and imageIndexes",
            seq=event.seq,
        )
    seq, indexes = natural(target["seq"]), target["imageIndexes"]
    if seq is None or not isinstance(indexes, list) or not indexes:
        raise OffloadPayloadError(
            f"{TYPE} at seq {event.seq}: target {target!r} needs a whole seq and a non-empty list",
            seq=event.seq,
        )
    return seq, indexes


def _omit(seq: int, indexes: list[Json], event: EventLike, history: History) -> Json:
    if seq not in history.nodes:
        raise OffloadTargetError(f"target {seq} is not on the surface", seq=event.seq)
    target = history.event(seq)
    if target is None or target.type not in INPUT_TYPES:
        kind = "no message" if target is None else target.type
        raise OffloadTargetError(
            f"target {seq} is {kind}; only images of user messages and tool results are omitted",
            seq=event.seq,
        )
    message = message_at(history, seq)
    return _mark(message, _checked(indexes, event.seq), event.seq)


def _checked(indexes: Sequence[Json], by: int | None) -> list[int]:
    last, checked = -1, []
    for value in indexes:
        index = natural(value)
        if index is None or index <= last:
            raise OffloadIndexError(
                f"image indexes {list(indexes)!r} are not whole numbers in increasing order", seq=by
            )
        checked.append(index)
        last = index
    return checked


def _mark(message: Json, indexes: list[int], by: int | None) -> Json:
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = list(images(content)) if isinstance(content, list) else []
    for index in indexes:
        if index < len(blocks) and is_omitted(blocks[index]):
            raise OffloadIndexError(f"image {index} is omitted already", seq=by)
    if indexes[-1] >= len(blocks):
        raise OffloadIndexError(
            f"image index {indexes[-1]} is beyond the message's {len(blocks)} image(s)", seq=by
        )
    return {**message, "content": marked(message["content"], indexes)}


IMAGE_OFFLOAD = MessageProjection(TYPE, project, plugin=PLUGIN)
"""The definition; there is one object of it, so that sessions recognise it by identity."""
