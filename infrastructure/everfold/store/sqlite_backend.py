"""The statements of a store on SQLite."""

import sqlite3
from collections.abc import Sequence
from itertools import chain, repeat

from everfold.session.errors import StoreError
from everfold.store.backend import (
    Copy,
    Follower,
    GlobalRow,
    KeyTakenError,
    Row,
    Run,
    SourceShortError,
    StreamDeletedError,
    VersionGapError,
    VersionTakenError,
)
from everfold.store.sqlite_connections import SessionSQLiteDatastore
from everfold.store.sqlite_errors import ERRORS, translate
from everfold.store.sqlite_log import SqliteFollower, last_position, select_log

_INSERT = "INSERT INTO stored_events (originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?)"
_INSERT_ROWS = 20
_LARGE_BYTES = 64 * 1024
_LAST = (
    "SELECT originator_version FROM stored_events WHERE originator_id = ?"
    " ORDER BY originator_version DESC LIMIT 1"
)
_ROWS = "SELECT originator_version, topic, state FROM stored_events WHERE originator_id = ?"
_COPY = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state)"
    " SELECT ?, originator_version, topic, state FROM stored_events"
    " WHERE originator_id = ? AND originator_version BETWEEN 2 AND ? ORDER BY originator_version"
)
_STREAMS = """
WITH RECURSIVE ids (id) AS (
    SELECT * FROM (
        SELECT originator_id FROM stored_events WHERE originator_id > ? AND originator_id >= ?
        ORDER BY originator_id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT originator_id FROM stored_events WHERE originator_id > ids.id
        ORDER BY originator_id LIMIT 1
    ) FROM ids WHERE ids.id IS NOT NULL LIMIT ?
)
SELECT id, head.originator_version, head.topic, head.state,
    tail.originator_version, tail.topic, tail.state
FROM ids
JOIN stored_events AS head ON head.rowid = (
    SELECT rowid FROM stored_events WHERE originator_id = id
    ORDER BY originator_version LIMIT 1
)
JOIN stored_events AS tail ON tail.rowid = (
    SELECT rowid FROM stored_events WHERE originator_id = id
    ORDER BY originator_version DESC LIMIT 1
)
"""
_MAX_PARAMETERS = 500
_NO_END = 2**62


class SqliteBackend:
    """A `Backend` on SQLite."""

    errors: tuple[type[Exception], ...] = ERRORS

    def __init__(self, datastore: SessionSQLiteDatastore) -> None:
        self.datastore = datastore

    def insert(self, runs: Sequence[Run], key: bytes | None) -> Sequence[int]:
        """Store the runs in one transaction that takes the write lock at its start."""
        count = last = 0
        with self.datastore.writing() as connection:
            for run in runs:
                _check_end(connection, run.stream_id, run.first)
                last = _insert(connection, run)
                count += len(run.topics)
            if key is not None:
                _insert_key(connection, runs[0], key)
        # One writer at a time, and AUTOINCREMENT counts on by one: the positions are contiguous.
        return range(last - count + 1, last + 1)

    def select(
        self, stream_id: str, after: int, upto: int | None, limit: int | None, descending: bool
    ) -> list[Row]:
        """Return rows of a stream in order of version."""
        statement = f"{_ROWS} AND originator_version > ?"
        parameters: list[str | int] = [stream_id, min(after, _NO_END)]
        if upto is not None:
            statement += " AND originator_version <= ?"
            parameters.append(min(upto, _NO_END))
        statement += f" ORDER BY originator_version {'DESC' if descending else 'ASC'}"
        if limit is not None:
            statement += " LIMIT ?"
            parameters.append(limit)
        return self._fetch(statement, parameters)

    def select_versions(self, stream_id: str, versions: Sequence[int]) -> list[Row]:
        """Return the rows at these versions in order of version."""
        wanted = sorted(set(versions))
        rows: list[Row] = []
        for start in range(0, len(wanted), _MAX_PARAMETERS):
            some = wanted[start : start + _MAX_PARAMETERS]
            statement = (
                f"{_ROWS} AND originator_version IN ({_marks(some)}) ORDER BY originator_version"
            )
            rows += self._fetch(statement, [stream_id, *some])
        return rows

    def select_positions(self, stream_id: str, first: int, last: int) -> list[int]:
        """Return the positions of the rows from version `first` to `last`."""
        statement = (
            "SELECT rowid FROM stored_events WHERE originator_id = ?"
            " AND originator_version BETWEEN ? AND ? ORDER BY originator_version"
        )
        with self.datastore.reading() as connection:
            return [row[0] for row in connection.execute(statement, (stream_id, first, last))]

    def select_last(self, stream_id: str, topics: Sequence[str], upto: int | None) -> Row | None:
        """Return the newest row with one of the topics."""
        statement = f"{_ROWS} AND topic IN ({_marks(topics)})"
        parameters: list[str | int] = [stream_id, *topics]
        if upto is not None:
            statement += " AND originator_version <= ?"
            parameters.append(upto)
        rows = self._fetch(f"{statement} ORDER BY originator_version DESC LIMIT 1", parameters)
        return rows[0] if rows else None

    def select_topics(self, stream_id: str, upto: int | None) -> list[str]:
        """Return the distinct topics of the rows up to a version."""
        statement = (
            "SELECT DISTINCT topic FROM stored_events"
            " WHERE originator_id = ? AND originator_version <= ?"
        )
        end = _NO_END if upto is None else upto
        with self.datastore.reading() as connection:
            return [row[0] for row in connection.execute(statement, (stream_id, end))]

    def select_key(self, stream_id: str, key: bytes) -> list[Row]:
        """Return the rows that were stored under this key."""
        statement = (
            "SELECT e.originator_version, e.topic, e.state FROM append_keys AS k"
            " JOIN stored_events AS e ON e.originator_id = k.originator_id"
            " AND e.originator_version BETWEEN k.first_version"
            " AND k.first_version + k.row_count - 1"
            " WHERE k.originator_id = ? AND k.key = ? ORDER BY e.originator_version"
        )
        return self._fetch(statement, [stream_id, key])

    def last_version(self, stream_id: str) -> int:
        """Return the last version, 0 if there is no such stream."""
        with self.datastore.reading() as connection:
            return _last_version(connection, stream_id)

    def copy(self, copy: Copy) -> int:
        """Make a stream of another one, row by row inside SQLite."""
        tail = Run(copy.target_id, copy.upto + 1, copy.tail_topics, copy.tail_states)
        with self.datastore.writing() as connection:
            _check_end(connection, copy.target_id, 1)
            connection.execute(_INSERT, (copy.target_id, 1, *copy.header))
            copied = connection.execute(_COPY, (copy.target_id, copy.source_id, copy.upto))
            if copied.rowcount != copy.upto - 1 or not _has_header(connection, copy.source_id):
                raise SourceShortError(
                    copy.source_id, f"{copied.rowcount} rows from 2 to {copy.upto}"
                )
            _insert(connection, tail)
        return tail.last

    def select_streams(self, after: str, prefix: str, limit: int) -> list[tuple[str, Row, Row]]:
        """Return streams in order of id, each found by one look into the index."""
        with self.datastore.reading() as connection:
            found = connection.execute(_STREAMS, (after, prefix, limit)).fetchall()
        # The statement finds them in this order; sorting here keeps SQLite from sorting on disk.
        return sorted((row[0], row[1:4], row[4:7]) for row in found)

    def delete(self, stream_id: str) -> bool:
        """Remove a stream and overwrite what it held, in the file and in the WAL."""
        with self.datastore.writing() as connection:
            last = _last_version(connection, stream_id)
            for table in ("stored_snapshots", "append_keys", "stored_events"):
                connection.execute(f"DELETE FROM {table} WHERE originator_id = ?", (stream_id,))
            if last:
                connection.execute(
                    "INSERT INTO deleted_streams VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (stream_id, last),
                )
        self.datastore.empty_wal()
        return last > 0

    def put_snapshot(self, stream_id: str, row: Row) -> None:
        """Store a snapshot; the newest two of a stream are kept, none of a deleted one."""
        with self.datastore.writing() as connection:
            if _is_deleted(connection, stream_id):
                return
            connection.execute(
                "INSERT OR REPLACE INTO stored_snapshots VALUES (?, ?, ?, ?)", (stream_id, *row)
            )
            connection.execute(
                "DELETE FROM stored_snapshots WHERE originator_id = ? AND originator_version < ("
                " SELECT originator_version FROM stored_snapshots WHERE originator_id = ?"
                " ORDER BY originator_version DESC LIMIT 1 OFFSET 1)",
                (stream_id, stream_id),
            )

    def select_snapshot(self, stream_id: str, upto: int | None) -> Row | None:
        """Return the newest snapshot at or below a version."""
        statement = (
            "SELECT originator_version, topic, state FROM stored_snapshots"
            " WHERE originator_id = ? AND originator_version <= ?"
            " ORDER BY originator_version DESC LIMIT 1"
        )
        rows = self._fetch(statement, [stream_id, _NO_END if upto is None else upto])
        return rows[0] if rows else None

    def select_log(
        self, after: int, upto: int, limit: int, topics: Sequence[str]
    ) -> list[GlobalRow]:
        """Return rows of the global order with `after` < position <= `upto`."""
        with self.datastore.reading() as connection:
            return select_log(connection, after, upto, limit, topics)

    def last_position(self) -> int:
        """Return the last position of the global order, 0 if nothing is stored."""
        with self.datastore.reading() as connection:
            return last_position(connection)

    def follower(self) -> Follower:
        """Open a connection that follows the global order."""
        return SqliteFollower(self.datastore)

    def translate(self, error: Exception) -> StoreError:
        """Return what a driver's error means to callers."""
        return translate(error, self.datastore.settings.name)

    def is_lost_connection(self, error: Exception) -> bool:
        """Return False: there is no reply that could be lost."""
        return not isinstance(error, self.errors)

    def close(self) -> None:
        """Close every connection."""
        self.datastore.close()

    def _fetch(self, statement: str, parameters: Sequence[str | int | bytes]) -> list[Row]:
        with self.datastore.reading() as connection:
            try:
                return connection.execute(statement, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if "decode to UTF-8" not in str(error):
                    raise
                return _fetch_damaged(connection, statement, parameters)


def _fetch_damaged(
    connection: sqlite3.Connection, statement: str, parameters: Sequence[str | int | bytes]
) -> list[Row]:
    """Return the rows although a topic is not text; such a row comes without its state."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        rows: list[Row] = connection.execute(statement, parameters).fetchall()
    finally:
        connection.text_factory = str
    return [(version, topic, b"" if "\ufffd" in topic else state) for version, topic, state in rows]


def _insert(connection: sqlite3.Connection, run: Run) -> int:
    """Insert a run and return its last position.

    Several rows a statement: SQLite then keeps its count of positions once for all of them.

    That takes half of the time of a statement a row. Large rows go one by one, for SQLite copies
    what a statement holds.
    """
    versions = range(run.first, run.last + 1)
    parameters = list(
        chain.from_iterable(
            zip(repeat(run.stream_id), versions, run.topics, run.states, strict=False)
        )
    )
    is_large = max(map(len, run.states), default=0) > _LARGE_BYTES
    step = 4 * (1 if is_large else _INSERT_ROWS)
    cursor = connection.cursor()
    for start in range(0, len(parameters), step):
        some = parameters[start : start + step]
        cursor.execute(_INSERT + ", (?, ?, ?, ?)" * (len(some) // 4 - 1), some)
    return cursor.lastrowid or 0


def _insert_key(connection: sqlite3.Connection, run: Run, key: bytes) -> None:
    done = connection.execute(
        "INSERT INTO append_keys VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (run.stream_id, key, run.first, len(run.topics)),
    )
    if not done.rowcount:
        raise KeyTakenError(run.stream_id, "the append's key was used before")


def _check_end(connection: sqlite3.Connection, stream_id: str, first: int) -> None:
    stored = _last_version(connection, stream_id)
    if stored == first - 1 and stored:
        return
    if stored >= first:
        raise VersionTakenError(stream_id, f"version {first} is taken")
    if _is_deleted(connection, stream_id):
        raise StreamDeletedError(stream_id, "it was deleted")
    if stored < first - 1:
        raise VersionGapError(stream_id, f"it ends at version {stored}, {first} would leave a gap")


def _last_version(connection: sqlite3.Connection, stream_id: str) -> int:
    row = connection.execute(_LAST, (stream_id,)).fetchone()
    return 0 if row is None else int(row[0])


def _is_deleted(connection: sqlite3.Connection, stream_id: str) -> bool:
    statement = "SELECT 1 FROM deleted_streams WHERE originator_id = ?"
    return connection.execute(statement, (stream_id,)).fetchone() is not None


def _has_header(connection: sqlite3.Connection, stream_id: str) -> bool:
    statement = "SELECT 1 FROM stored_events WHERE originator_id = ? AND originator_version = 1"
    return connection.execute(statement, (stream_id,)).fetchone() is not None


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
