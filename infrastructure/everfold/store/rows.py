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

_FIRST_PAGE_ROWS = 1000
_PAGE_ROWS = 5000

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
    size = _PAGE_ROWS
    while limit is None or limit > 0:
        if limit is not None:
            size = min(size, limit)
            limit -= size
        rows = fetch(after, upto, size)
        if rows and rows[-1][0] - after != len(rows):
            whole = _until_gap(rows, after, 1)
            yield checked(mapper, stream_id, whole)
            raise _missing(stream_id, after + len(whole) + 1)
        if rows:
            yield checked(mapper, stream_id, rows)
            after = rows[-1][0]
        if len(rows) < size:
            return


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
    size = _PAGE_ROWS
    due: int | None = None
    while limit is None or limit > 0:
        if limit is not None:
            size = min(size, limit)
            limit -= size
        rows = fetch(after, upto, size)
        is_end = len(rows) < size
        if rows:
            due = rows[0][0] if due is None else due
            whole = _until_gap(rows, due + 1, -1)
            yield checked(mapper, stream_id, whole)
            due -= len(whole)
            if len(whole) < len(rows):
                raise _missing(stream_id, due)
            upto = due
        if is_end:
            if due is not None and due > after:
                raise _missing(stream_id, due)
            return


def _until_gap(rows: Sequence[Row], before: int, step: int) -> Sequence[Row]:
    if abs(rows[-1][0] - before) == len(rows):
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
        CorruptStreamError: a state cannot be one that was stored.
    """
    if mapper.is_plain:
        return [Recorded(stream_id, version, topic, state) for version, topic, state in rows]
    return [decoded(mapper, stream_id, row) for row in rows]


def decoded(mapper: SessionMapper, stream_id: str, row: Row) -> Recorded:
    """Return one row as an event.

    Raises:
        CorruptStreamError: its state cannot be one that was stored.
    """
    version, topic, state = row
    try:
        return Recorded(stream_id, version, topic, mapper.decode_state(state))
    except MapperDeserialisationError as error:
        raise CorruptStreamError(stream_id, seq_of(version), str(error)) from error
