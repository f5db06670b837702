"""The interpreter of `image/offload`: checks the whole payload, then marks the named occurrences."""

from collections.abc import Mapping

from everfold.llm.images import images, is_omitted, marked
from everfold.projections.image_offload.errors import OffloadIndexError, OffloadTargetError
from everfold.projections.image_offload.targets import checked_indexes, targets_of
from everfold.session.events import EventLike
from everfold.session.frozen import Json
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
    for seq, indexes in targets_of(event):
        updates[seq] = _omit(seq, indexes, event, history)
    return updates


def mark_message(message: Json, indexes: Json) -> Json:
    """Return a copy of a message with the image occurrences at `indexes` omitted.

    Args:
        indexes: whole numbers, strictly increasing.

    Raises:
        OffloadIndexError: an index is not whole, not increasing, beyond the images, or
            names an omitted occurrence; or there is no list of them.
        OffloadTargetError: this is no message with a list of content.
    """
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        raise OffloadTargetError(f"{message!r:.200} is no message with a list of content")
    return _mark(message, checked_indexes(indexes, None), None)


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
    return _mark(message, checked_indexes(indexes, event.seq), event.seq)


def _mark(message: Json, indexes: list[int], by: int | None) -> Json:
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = list(images(content)) if isinstance(content, list) else []
    for index in indexes:
        if index < len(blocks) and is_omitted(blocks[index]):
            raise OffloadIndexError(f"image {index} is omitted already", seq=by)
    if indexes and indexes[-1] >= len(blocks):
        raise OffloadIndexError(
            f"image index {indexes[-1]} is beyond the message's {len(blocks)} image(s)", seq=by
        )
    return {**message, "content": marked(message["content"], indexes)}


IMAGE_OFFLOAD = MessageProjection(TYPE, project, plugin=PLUGIN)
"""The definition; there is one object of it, so that sessions recognise it by identity."""
