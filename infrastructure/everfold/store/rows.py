"""From stored rows to events: page by page, with every gap and every unreadable row found.

Versions are unique and ordered by the database, so a page has no gap if its first and its last
version are as far apart as it has rows: nothing is paid per row.
"""

from collections.abc import Callable, Iterator, Sequence

from eventsourcing.persistence import MapperDeserialisationError

from everfold.session.errors import CorruptStreamError
from everfold.session.events import Recorded
from everfold.session.ids import seq_of
from everfold.store.backend import Row
from everfold.store.mapper import SessionMapper

_FIRST_PAGE_ROWS = 64
_MAX_PAGE_ROWS = 1000
_PAGE_BYTES = 4 * 1024 * 1024

Fetch = Callable[[int, int | None, int], list[Row]]
"""Gives rows with low < version <= high, at most so many, in the wanted order."""


def ascending(
    mapper: SessionMapper,
    stream_id: str,
    fetch: Fetch,
    after: int,
    upto: int | None,
    limit: int | None,
) -> Iterator[list[Recorded]]:
    """Yield a stream's rows in ascending order.

    Raises:
        CorruptStreamError: after the rows before the first one that is missing or unreadable.
    """
    size = _FIRST_PAGE_ROWS
    while limit is None or limit > 0:
        if limit is not None:
            size = min(size, limit)
            limit -= size
        rows = fetch(after, upto, size)
        whole = _until_gap(rows, after, 1)
        events, fault = sound(mapper, stream_id, whole)
        yield events
        after += len(whole)
        if fault is not None:
            raise fault
        if len(whole) < len(rows):
            raise _missing(stream_id, after + 1)
        if len(rows) < size:
            return
        size = _next_size(rows)


def descending_pages(
    mapper: SessionMapper,
    stream_id: str,
    fetch: Fetch,
    after: int,
    upto: int | None,
    limit: int | None,
) -> Iterator[list[Recorded]]:
    """Yield a stream's rows in descending order.

    Raises:
        CorruptStreamError: after the rows above the first one that is missing or unreadable.
    """
    size = _FIRST_PAGE_ROWS
    due: int | None = None
    while limit is None or limit > 0:
        if limit is not None:
            size = min(size, limit)
            limit -= size
        rows = fetch(after, upto, size)
        is_end = len(rows) < size
        if rows and due is None:
            due = rows[0][0]
        if due is not None:
            whole = _until_gap(rows, due + 1, -1)
            events, fault = sound(mapper, stream_id, whole)
            yield events
            if fault is not None:
                raise fault
            due -= len(whole)
            if len(whole) < len(rows) or (is_end and due > after):
                raise _missing(stream_id, due)
            upto = due
        if is_end:
            return
        size = _next_size(rows)


def _next_size(rows: Sequence[Row]) -> int:
    """Return how many rows the next page gets, so that a page of large rows takes no more memory."""
    largest = max(len(state) for _version, _topic, state in rows)
    return max(1, min(_MAX_PAGE_ROWS, _PAGE_BYTES // max(1, largest)))


def _until_gap(rows: Sequence[Row], before: int, step: int) -> Sequence[Row]:
    if not rows or abs(rows[-1][0] - before) == len(rows):
        return rows
    for index, row in enumerate(rows, 1):
        if row[0] != before + step * index:
            return rows[: index - 1]
    return rows


def _missing(stream_id: str, version: int) -> CorruptStreamError:
    return CorruptStreamError(stream_id, seq_of(version), "the row is missing")


def checked(mapper: SessionMapper, stream_id: str, rows: Sequence[Row]) -> list[Recorded]:
    """Return the rows as events.

    Raises:
        CorruptStreamError: one of them is unreadable.
    """
    events, fault = sound(mapper, stream_id, rows)
    if fault is not None:
        raise fault
    return events


def unchecked(mapper: SessionMapper, stream_id: str, row: Row) -> Recorded:
    """Return a row as an event; an unreadable one with the bytes that are stored.

    For lists of streams and followers of the log, which one damaged stream must not stop: whoever
    decodes that event finds out.
    """
    version, topic, stored = row
    try:
        return Recorded(stream_id, version, topic, mapper.decode_state(stored))
    except MapperDeserialisationError:
        return Recorded(stream_id, version, topic, stored)


def sound(
    mapper: SessionMapper, stream_id: str, rows: Sequence[Row]
) -> tuple[list[Recorded], CorruptStreamError | None]:
    """Return the rows before the first unreadable one as events, and what is wrong with that one.

    A state that does not end as an object does is unreadable: cut off, overwritten with zeros, not
    bytes at all. Whether it is JSON from end to end is found out where it is decoded.
    """
    if mapper.is_plain:
        events = [
            Recorded(stream_id, version, topic, state)
            for version, topic, state in rows
            if state[-1:] == b"}"
        ]
        if len(events) == len(rows):
            return events, None
    return _sound_slowly(mapper, stream_id, rows)


def _sound_slowly(
    mapper: SessionMapper, stream_id: str, rows: Sequence[Row]
) -> tuple[list[Recorded], CorruptStreamError | None]:
    events: list[Recorded] = []
    for version, topic, stored in rows:
        try:
            state = mapper.decode_state(stored)
        except MapperDeserialisationError as error:
            return events, CorruptStreamError(stream_id, seq_of(version), str(error))
        if state[-1:] != b"}":
            reason = "its stored state is not whole"
            return events, CorruptStreamError(stream_id, seq_of(version), reason)
        events.append(Recorded(stream_id, version, topic, state))
    return events, None
