"""The statements of a store on PostgreSQL."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from everfold.session.errors import StoreError
from everfold.store.backend import Copy, Follower, GlobalRow, Row, Run
from everfold.store.postgres_arrays import (
    BIG_INT,
    BIG_INTS,
    BLOB,
    BLOBS,
    INTS,
    TEXT,
    TEXTS,
    big_int,
    big_ints,
    blobs,
    ints,
    texts,
    unpacked_big_int,
    unpacked_big_ints,
)
from everfold.store.postgres_calls import Call
from everfold.store.postgres_connections import Connection, SessionPostgresDatastore
from everfold.store.postgres_errors import is_lost_connection, refusal_of, translate
from everfold.store.postgres_log import PostgresFollower, select_log, settled_position

T = TypeVar("T")

_NO_END = 2**62

_COMMIT_EVENT = Call("commit_event", (TEXT, BIG_INT, TEXT, BLOB, BLOB))
_COMMIT_EVENTS = Call("commit_events", (TEXTS, BIG_INTS, INTS, TEXTS, BLOBS, BLOB))
_COMMIT_COPY = Call("commit_copy", (TEXT, BIG_INT, TEXT, TEXT, BLOB, TEXTS, BLOBS))
_ROWS = "SELECT originator_version, topic, state FROM stored_events WHERE originator_id = %s"
# OFFSET 0 keeps the planner from joining the two: it would read the whole stream for one key.
_BY_KEY = """
SELECT e.originator_version, e.topic, e.state FROM append_keys AS k
CROSS JOIN LATERAL (
    SELECT * FROM stored_events WHERE originator_id = k.originator_id
    AND originator_version >= k.first_version
    AND originator_version < k.first_version + k.row_count
    ORDER BY originator_version OFFSET 0
) AS e
WHERE k.originator_id = %s AND k.key = %s
"""
_STREAMS = """
WITH RECURSIVE ids (id) AS (
    (
        SELECT originator_id FROM stored_events WHERE originator_id > %s AND originator_id >= %s
        ORDER BY originator_id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT originator_id FROM stored_events WHERE originator_id > ids.id
        ORDER BY originator_id LIMIT 1
    ) FROM ids WHERE ids.id IS NOT NULL
)
SELECT found.id, head.originator_version, head.topic, head.state,
    tail.originator_version, tail.topic, tail.state
FROM (SELECT id FROM ids WHERE id IS NOT NULL LIMIT %s) AS found
CROSS JOIN LATERAL (
    SELECT * FROM stored_events WHERE originator_id = found.id
    ORDER BY originator_version LIMIT 1
) AS head
CROSS JOIN LATERAL (
    SELECT * FROM stored_events WHERE originator_id = found.id
    ORDER BY originator_version DESC LIMIT 1
) AS tail
ORDER BY found.id
"""


class PostgresBackend:
    """A `Backend` on PostgreSQL: each method is one statement in autocommit mode."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, datastore: SessionPostgresDatastore) -> None:
        self.datastore = datastore

    def insert(self, runs: Sequence[Run], key: bytes | None) -> Sequence[int]:
        """Store the runs in one round trip.

        One plain statement and no pipeline: the driver's pipeline hangs for ever, with its locks
        held, when a batch does not fit the socket's buffers (docs/decisions/0011).
        """
        if len(runs) == 1 and len(runs[0].topics) == 1:
            return [self._insert_one(runs[0], key)]
        values = (
            texts([run.stream_id for run in runs]),
            big_ints([run.first for run in runs]),
            ints([len(run.topics) for run in runs]),
            texts([topic for run in runs for topic in run.topics]),
            blobs([state for run in runs for state in run.states]),
            key,
        )
        return unpacked_big_ints(self._commit(_COMMIT_EVENTS, values))

    def _insert_one(self, run: Run, key: bytes | None) -> int:
        values = (
            run.stream_id.encode(),
            big_int(run.first),
            run.topics[0].encode(),
            run.states[0],
            key,
        )
        return unpacked_big_int(self._commit(_COMMIT_EVENT, values))

    def select(
        self, stream_id: str, after: int, upto: int | None, limit: int | None, descending: bool
    ) -> list[Row]:
        """Return rows of a stream in order of version."""
        statement = f"{_ROWS} AND originator_version > %s"
        parameters: list[object] = [stream_id, after]
        if upto is not None:
            statement += " AND originator_version <= %s"
            parameters.append(upto)
        statement += f" ORDER BY originator_version {'DESC' if descending else 'ASC'}"
        if limit is not None:
            statement += " LIMIT %s"
            parameters.append(limit)
        return self._fetch(statement, parameters)

    def select_versions(self, stream_id: str, versions: Sequence[int]) -> list[Row]:
        """Return the rows at these versions in order of version."""
        statement = f"{_ROWS} AND originator_version = ANY(%s) ORDER BY originator_version"
        return self._fetch(statement, (stream_id, big_ints(versions)))

    def select_positions(self, stream_id: str, first: int, last: int) -> list[int]:
        """Return the positions of the rows from version `first` to `last`."""
        statement = (
            "SELECT notification_id FROM stored_events WHERE originator_id = %s"
            " AND originator_version BETWEEN %s AND %s ORDER BY originator_version"
        )
        return [row[0] for row in self._fetch(statement, (stream_id, first, last))]

    def select_last(self, stream_id: str, topics: Sequence[str], upto: int | None) -> Row | None:
        """Return the newest row with one of the topics."""
        statement = (
            f"{_ROWS} AND originator_version <= %s AND topic = ANY(%s)"
            " ORDER BY originator_version DESC LIMIT 1"
        )
        end = _NO_END if upto is None else upto
        rows = self._fetch(statement, (stream_id, end, texts(topics)))
        return rows[0] if rows else None

    def select_topics(self, stream_id: str, upto: int | None) -> list[str]:
        """Return the distinct topics of the rows up to a version."""
        statement = (
            "SELECT DISTINCT topic FROM stored_events"
            " WHERE originator_id = %s AND originator_version <= %s"
        )
        end = _NO_END if upto is None else upto
        return [row[0] for row in self._fetch(statement, (stream_id, end))]

    def select_key(self, stream_id: str, key: bytes) -> list[Row]:
        """Return the rows that were stored under this key."""
        return self._fetch(_BY_KEY, (stream_id, key))

    def last_version(self, stream_id: str) -> int:
        """Return the last version, 0 if there is no such stream."""
        statement = (
            "SELECT originator_version FROM stored_events WHERE originator_id = %s"
            " ORDER BY originator_version DESC LIMIT 1"
        )
        rows = self._fetch(statement, (stream_id,))
        return int(rows[0][0]) if rows else 0

    def copy(self, copy: Copy) -> int:
        """Make a stream of another one, inside the server."""
        topic, state = copy.header
        values = (
            copy.source_id.encode(),
            big_int(copy.upto),
            copy.target_id.encode(),
            topic.encode(),
            state,
            texts(copy.tail_topics),
            blobs(copy.tail_states),
        )
        return unpacked_big_int(self._commit(_COMMIT_COPY, values))

    def select_streams(self, after: str, prefix: str, limit: int) -> list[tuple[str, Row, Row]]:
        """Return streams in order of id, each found by one look into the index."""
        found = self._read(lambda connection: _rows(connection, _STREAMS, (after, prefix, limit)))
        return [(row[0], row[1:4], row[4:7]) for row in found]

    def delete(self, stream_id: str) -> bool:
        """Remove a stream for ever; return whether there was one."""
        was_there: bool = self._call("SELECT delete_stream(%s)", (stream_id,))
        return was_there

    def put_snapshot(self, stream_id: str, row: Row) -> None:
        """Store a snapshot; the newest two of a stream are kept, none of a deleted one."""
        self._call("SELECT save_snapshot(%s, %s, %s, %b)", (stream_id, *row))

    def select_snapshot(self, stream_id: str, upto: int | None) -> Row | None:
        """Return the newest snapshot at or below a version."""
        statement = (
            "SELECT originator_version, topic, state FROM stored_snapshots"
            " WHERE originator_id = %s AND originator_version <= %s"
            " ORDER BY originator_version DESC LIMIT 1"
        )
        rows = self._fetch(statement, (stream_id, _NO_END if upto is None else upto))
        return rows[0] if rows else None

    def select_log(
        self, after: int, upto: int, limit: int, topics: Sequence[str]
    ) -> list[GlobalRow]:
        """Return rows of the global order with `after` < position <= `upto`."""
        return self._read(lambda connection: select_log(connection, after, upto, limit, topics))

    def last_position(self) -> int:
        """Return the last settled position of the global order, 0 if nothing is stored."""
        return self._read(settled_position)[0]

    def follower(self) -> Follower:
        """Open a connection that follows the global order."""
        self.datastore.connections.check()
        return PostgresFollower(self.datastore.settings)

    def translate(self, error: Exception) -> StoreError:
        """Return what a driver's error means to callers."""
        return translate(error, self.datastore.settings.name)

    def is_lost_connection(self, error: Exception) -> bool:
        """Return whether the server may have carried out a statement without saying so."""
        return is_lost_connection(error)

    def close(self) -> None:
        """Close every connection."""
        self.datastore.close()

    def _commit(self, call: Call, values: Sequence[bytes | None]) -> bytes:
        """Call a procedure that commits; its refusals come out as such.

        Who meets another writer at the primary key waits for it, and learns only that it won. Called
        again, the procedure finds what that one stored, and says which stream it refuses and why.
        """
        try:
            return self._commit_once(call, values)
        except psycopg.errors.UniqueViolation:
            return self._commit_once(call, values)

    def _commit_once(self, call: Call, values: Sequence[bytes | None]) -> bytes:
        try:
            with self.datastore.using() as connection:
                return call.run(connection, values)
        except psycopg.Error as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            raise refusal from error

    def _call(self, statement: str, parameters: Sequence[object]) -> Any:
        """Call a function of the schema once."""
        with self.datastore.using() as connection, connection.cursor(binary=True) as cursor:
            row = cursor.execute(statement.encode(), parameters, prepare=True).fetchone()
        return row[0] if row else None

    def _fetch(self, statement: str, parameters: Sequence[object]) -> list[Any]:
        return self._read(lambda connection: _rows(connection, statement, parameters))

    def _read(self, work: Callable[[Connection], T]) -> T:
        """Read; once more if the connection turns out to be lost, for reading changes nothing."""
        try:
            with self.datastore.using() as connection:
                return work(connection)
        except psycopg.Error as error:
            if not is_lost_connection(error):
                raise
        with self.datastore.using() as connection:
            return work(connection)


def _rows(connection: Connection, statement: str, parameters: Sequence[object]) -> list[Any]:
    with connection.cursor(binary=True) as cursor:
        return cursor.execute(statement.encode(), parameters).fetchall()
