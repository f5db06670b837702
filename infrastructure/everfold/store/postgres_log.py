"""The global order of a PostgreSQL database: reading it, and following it as it grows."""

import contextlib
import select
import socket
from collections.abc import Sequence

from everfold.store.backend import GlobalRow
from everfold.store.postgres_connections import Connection, PostgresSettings, connect

_LOG = (
    "SELECT notification_id, originator_id, originator_version, topic, state FROM stored_events"
    " WHERE notification_id > %s AND notification_id <= %s"
)
_SCAN_ROWS = 5000
_NO_END = 2**62


def select_log(
    connection: Connection, after: int, upto: int | None, limit: int, topics: Sequence[str]
) -> list[GlobalRow]:
    """Return rows with `after` < position <= `upto` in order; of some topics if any are given."""
    end = _NO_END if upto is None else upto
    with connection.cursor(binary=True) as cursor:
        if topics:
            statement = _LOG + " AND topic = ANY(%s) ORDER BY notification_id LIMIT %s"
            cursor.execute(statement, (after, end, list(topics), limit))
        else:
            cursor.execute(_LOG + " ORDER BY notification_id LIMIT %s", (after, end, limit))
        return cursor.fetchall()


def last_position(connection: Connection) -> int:
    """Return the last position, 0 if nothing is stored."""
    row = connection.execute(
        "SELECT coalesce(max(notification_id), 0) FROM stored_events"
    ).fetchone()
    return 0 if row is None else int(row[0])


class PostgresFollower:
    """A `Follower` that listens.

    It listens before its first read, and its owner reads at least each second: the library reads
    first, and waits for ever for an event that was stored in between (docs/decisions/0011).
    """

    def __init__(self, settings: PostgresSettings) -> None:
        self._wake_end, self._wake_start = socket.socketpair()
        try:
            self._connection = connect(settings)
            self._connection.execute(f'LISTEN "{settings.channel}"'.encode())
        except BaseException:
            self._close_wake()
            raise

    def read(self, after: int, limit: int, topics: Sequence[str]) -> tuple[int, list[GlobalRow]]:
        """Return how far was looked, and the rows that were found on the way.

        A look covers a bounded part of the log, so that a rare topic does not make each one scan
        all that was passed over before (docs/decisions/0011).
        """
        end = min(last_position(self._connection), after + _SCAN_ROWS)
        if end <= after:
            return after, []
        rows = select_log(self._connection, after, end, limit, topics)
        return (rows[-1][0] if len(rows) == limit else end), rows

    def wait(self, timeout_s: float) -> None:
        """Return when something was stored, when woken, or when the time is over."""
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN)
        poll.register(self._wake_end, select.POLLIN)
        poll.poll(timeout_s * 1000)
        # Takes what was heard out of the way; a closed connection raises here.
        for _ in self._connection.notifies(timeout=0):
            pass

    def wake(self) -> None:
        """End a wait."""
        # It may be closed already, by the thread that used it.
        with contextlib.suppress(OSError):
            self._wake_start.send(b"!")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._close_wake()

    def _close_wake(self) -> None:
        self._wake_end.close()
        self._wake_start.close()
