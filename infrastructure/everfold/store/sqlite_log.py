"""The global order of an SQLite database: reading it, and following it as it grows."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from everfold.store.backend import GlobalRow
from everfold.store.sqlite_connections import SessionSQLiteDatastore

_LOG = "SELECT rowid, originator_id, originator_version, topic, state FROM stored_events"
_FASTEST_POLL_S = 0.01
_SLOWEST_POLL_S = 0.05
_SCAN_ROWS = 5000


def select_log(
    connection: sqlite3.Connection, after: int, upto: int, limit: int, topics: Sequence[str]
) -> list[GlobalRow]:
    """Return rows with `after` < position <= `upto` in order; of some topics if any are given."""
    statement = f"{_LOG} WHERE rowid > ? AND rowid <= ?"
    parameters: list[str | int] = [after, upto]
    if topics:
        statement += f" AND topic IN ({','.join('?' * len(topics))})"
        parameters += topics
    return connection.execute(
        f"{statement} ORDER BY rowid LIMIT ?", [*parameters, limit]
    ).fetchall()


def last_position(connection: sqlite3.Connection) -> int:
    """Return the last position, 0 if nothing is stored."""
    return int(
        connection.execute("SELECT coalesce(max(rowid), 0) FROM stored_events").fetchone()[0]
    )


class SqliteFollower:
    """A `Follower` that asks SQLite whether the database has changed.

    The library has no subscription on SQLite at all (docs/decisions/0011). `PRAGMA
    data_version` costs a few microseconds and changes with every commit of any other connection;
    commits of this process wake it at once.
    """

    def __init__(self, datastore: SessionSQLiteDatastore) -> None:
        self._datastore = datastore
        self._wake = threading.Event()
        # A database in memory has one connection for all.
        self._own = None if datastore.settings.path is None else datastore.open_reader()
        self._seen = -1
        self._poll_s = _FASTEST_POLL_S
        datastore.add_follower(self._wake)

    def read(self, after: int, limit: int, topics: Sequence[str]) -> tuple[int, list[GlobalRow]]:
        """Return how far was looked, and the rows that were found on the way.

        A look covers a bounded part of the log, so that a rare topic does not make each one scan
        all that was passed over before (docs/decisions/0011).
        """
        self._wake.clear()
        with self._reading() as connection:
            self._seen = _data_version(connection)
            end = min(last_position(connection), after + _SCAN_ROWS)
            rows = select_log(connection, after, end, limit, topics) if end > after else []
        if self._is_overtaken():
            return after, []
        return (rows[-1][0] if len(rows) == limit else max(end, after)), rows

    def wait(self, timeout_s: float) -> None:
        """Return at the next commit, or when woken, or when the time is over."""
        while timeout_s > 0:
            if self._wake.wait(min(self._poll_s, timeout_s)) or self._has_changed():
                self._poll_s = _FASTEST_POLL_S
                return
            timeout_s -= self._poll_s
            self._poll_s = min(self._poll_s * 1.1, _SLOWEST_POLL_S)

    def wake(self) -> None:
        """End a wait."""
        self._wake.set()

    def close(self) -> None:
        """Close the connection."""
        self._datastore.remove_follower(self._wake)
        if self._own is not None:
            self._own.close()

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        if self._own is None:
            return self._datastore.reading()
        if self._is_overtaken():
            self._own.close()
            self._own = self._datastore.open_reader()
        return nullcontext(self._own)

    def _is_overtaken(self) -> bool:
        """Tell whether the file was taken for one that nobody writes, and somebody wrote it."""
        return self._own is not None and not self._datastore.is_current(self._own)

    def _has_changed(self) -> bool:
        # All commits to a database in memory are this process's own, and wake.
        if self._own is None:
            return False
        return self._is_overtaken() or _data_version(self._own) != self._seen


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])
