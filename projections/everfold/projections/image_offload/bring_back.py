"""The interpreter of `image/bring-back`: a decision to show omitted images again.

It undoes what `image/offload` events did; a mark that a stored message carries itself is part of
that message and stays. The earlier events stay too: history shows both decisions.
"""

from collections.abc import Mapping

from everfold.llm.images import images, is_omitted
from everfold.projections.image_offload.errors import OffloadIndexError, OffloadTargetError
from everfold.projections.image_offload.projection import PLUGIN
from everfold.projections.image_offload.targets import checked_indexes, targets_of
from everfold.session.derive import message_of
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.projection import History, MessageProjection, message_at

TYPE = "image/bring-back"


def project(event: EventLike, history: History) -> Mapping[int, Json]:
    """Return the messages in which the event shows omitted images again.

    Raises:
        OffloadPayloadError, OffloadTargetError, OffloadIndexError: one target is wrong, so the
            event is refused whole.
    """
    updates: dict[int, Json] = {}
    for seq, indexes in targets_of(event):
        updates[seq] = _shown(seq, checked_indexes(indexes, event.seq), event, history)
    return updates


def _shown(seq: int, indexes: list[int], event: EventLike, history: History) -> Json:
    target = history.event(seq)
    if target is None or seq not in history.nodes:
        raise OffloadTargetError(f"target {seq} is not on the surface", seq=event.seq)
    message = message_at(history, seq) or {}
    before, now = _content(message_of(target)), _content(message)
    stored, current = list(images(before)), list(images(now))
    for index in indexes:
        fault = _fault(index, stored, current)
        if fault is not None:
            raise OffloadIndexError(f"image {index} of seq {seq} {fault}", seq=event.seq)
    chosen = {id(current[index]): stored[index] for index in indexes}
    return {**message, "content": _exchanged(now, chosen)}


def _fault(index: int, stored: list[Json], current: list[Json]) -> str | None:
    if index >= len(current):
        return f"is beyond the message's {len(current)} image(s)"
    if not is_omitted(current[index]):
        return "is not omitted"
    if is_omitted(stored[index]):
        return "is omitted in the stored message itself and cannot be brought back"
    return None


def _content(message: Json) -> list[Json]:
    content = message.get("content") if isinstance(message, Mapping) else None
    return content if isinstance(content, list) else []


def _exchanged(content: list[Json], chosen: Mapping[int, Json]) -> list[Json]:
    """Return content in which the chosen image blocks, by identity, are others."""
    result = []
    for block in content:
        if isinstance(block, dict) and isinstance(block.get("content"), list):
            inner = _exchanged(block["content"], chosen)
            is_same = all(new is old for new, old in zip(inner, block["content"], strict=True))
            result.append(block if is_same else {**block, "content": inner})
        else:
            result.append(chosen.get(id(block), block))
    return result


BRING_BACK = MessageProjection(TYPE, project, plugin=PLUGIN)
"""The definition; there is one object of it, so that sessions recognise it by identity."""
