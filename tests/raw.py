"""Plain driver access to a store's database, to see and do what no store would."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.postgres import connect

Row = tuple[int, str, int, str, bytes]
"""Position, stream id, version, topic, state."""


def path_of(url: str) -> Path:
    """Return the file of an SQLite store."""
    return Path(url.removeprefix("sqlite:///"))


@contextmanager
def sqlite(url: str) -> Iterator[sqlite3.Connection]:
    """Yield a connection to an SQLite store's file, in autocommit mode."""
    with closing(sqlite3.connect(path_of(url), timeout=30, isolation_level=None)) as connection:
        yield connection


def stored_rows(url: str) -> list[Row]:
    """Return every row of the log as the database holds it, in the global order."""
    if url.startswith("sqlite:"):
        with sqlite(url) as connection:
            return connection.execute(
                "SELECT rowid, originator_id, originator_version, topic, state"
                " FROM stored_events ORDER BY rowid"
            ).fetchall()
    with connect(url) as server:
        return server.execute(
            "SELECT notification_id, originator_id, originator_version, topic, state"
            " FROM stored_events ORDER BY notification_id"
        ).fetchall()
