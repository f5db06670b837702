"""The payload that names image occurrences, `{targets: [{seq, imageIndexes}]}`, read strictly (R205, R206, R212)."""

from collections.abc import Iterator, Sequence

from everfold.projections.image_offload.errors import (
    OffloadIndexError,
    OffloadPayloadError,
    OffloadTargetError,
)
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.lossless import natural


def targets_of(event: EventLike) -> Iterator[tuple[int, list[Json]]]:
    """Yield seq and image indexes of each target; one after another, so that the first fault is met first.

    Raises:
        OffloadPayloadError: the data or a target does not have the exact form.
        OffloadTargetError: a seq is a target twice (R209).
    """
    seen: set[int] = set()
    for target in _list_of(event):
        seq, indexes = _read(target, event)
        if seq in seen:
            raise OffloadTargetError(f"seq {seq} is a target twice", seq=event.seq)
        seen.add(seq)
        yield seq, indexes


def _list_of(event: EventLike) -> list[Json]:
    data = event.data
    targets = data.get("targets") if isinstance(data, dict) and data.keys() == {"targets"} else None
    if not isinstance(targets, list) or not targets:
        raise OffloadPayloadError(
            f"{event.type} at seq {event.seq}: data is not one non-empty list `targets`",
            seq=event.seq,
        )
    return targets


def _read(target: Json, event: EventLike) -> tuple[int, list[Json]]:
    where = f"{event.type} at seq {event.seq}: target {target!r}"
    if not isinstance(target, dict) or target.keys() != {"seq", "imageIndexes"}:
        raise OffloadPayloadError(
            f"{where} is not an object of seq and imageIndexes", seq=event.seq
        )
    seq, indexes = natural(target["seq"]), target["imageIndexes"]
    if seq is None or not isinstance(indexes, list) or not indexes:
        raise OffloadPayloadError(f"{where} needs a whole seq and a non-empty list", seq=event.seq)
    return seq, indexes


def checked_indexes(indexes: Json, by: int | None) -> list[int]:
    """Return the indexes as whole numbers in strictly increasing order (R212).

    Args:
        by: the seq of the event that names them; None if no event does.

    Raises:
        OffloadIndexError: they are not, or no list at all.
    """
    if not isinstance(indexes, Sequence) or isinstance(indexes, str | bytes):
        raise OffloadIndexError(f"image indexes {indexes!r} are no list", seq=by)
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
