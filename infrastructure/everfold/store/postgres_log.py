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
_FIRST_HELD_S = 0.01
"""How soon a follower looks again that was held back; each time it waits twice as long."""


def select_log(
    connection: Connection, after: int, upto: int, limit: int, topics: Sequence[str]
) -> list[GlobalRow]:
    """Return rows with `after` < position <= `upto` in order; of some topics if any are given.

    Args:
        upto: a position that was settled before this statement starts.
    """
    with connection.cursor(binary=True) as cursor:
        if topics:
            statement = _LOG + " AND topic = ANY(%s) ORDER BY notification_id LIMIT %s"
            cursor.execute(statement, (after, upto, list(topics), limit))
        else:
            cursor.execute(_LOG + " ORDER BY notification_id LIMIT %s", (after, upto, limit))
        return cursor.fetchall()


def settled_position(connection: Connection) -> tuple[int, bool]:
    """Return the last position below which nothing will be committed any more, 0 if nothing is stored.

    And whether rows above it are stored already: a writer that was there before them is at work yet.
    """
    row = connection.execute("SELECT place, is_held FROM settled_position()").fetchone()
    assert row is not None
    return row[0], row[1]


class PostgresFollower:
    """A `Follower` that listens.

    It listens before its first read, and its owner reads at least each second: the library reads
    first, and waits for ever for an event that was stored in between (docs/decisions/0011).

    Every writer that commits wakes it, so also one that held it back. One that gives up wakes nobody:
    while it is held back it looks again by itself, soon and then less and less often.
    """

    def __init__(self, settings: PostgresSettings) -> None:
        self._wake_end, self._wake_start = socket.socketpair()
        self._settled = 0
        self._held_s: float | None = None
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
        if self._settled <= after:
            self._settle()
        end = min(self._settled, after + _SCAN_ROWS)
        if end <= after:
            return after, []
        rows = select_log(self._connection, after, end, limit, topics)
        return (rows[-1][0] if len(rows) == limit else end), rows

    def _settle(self) -> None:
        place, is_held = settled_position(self._connection)
        if not is_held:
            self._held_s = None
        elif self._held_s is None or place > self._settled:
            self._held_s = _FIRST_HELD_S
        else:
            self._held_s *= 2
        self._settled = place

    def wait(self, timeout_s: float) -> None:
        """Return when something was stored, when woken, or when the time is over."""
        timeout_s = min(timeout_s, self._held_s or timeout_s)
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
