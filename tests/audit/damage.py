"""Harm done to a store behind its back, on either database."""

from tests.postgres import connect
from tests.raw import sqlite


def execute(url: str, statement: str, *values: object) -> None:
    """Run one statement on a store's database; `?` stands for a value."""
    if url.startswith("sqlite:"):
        with sqlite(url) as connection:
            connection.execute(statement, values)
        return
    with connect(url) as server:
        server.execute(statement.replace("?", "%s").encode(), values)


def remove_row(url: str, session_id: str, version: int) -> None:
    """Remove one row of a stream."""
    execute(
        url,
        "DELETE FROM stored_events WHERE originator_id = ? AND originator_version = ?",
        session_id,
        version,
    )


def rewrite_row(url: str, session_id: str, version: int, state: bytes) -> None:
    """Give one row other bytes."""
    execute(
        url,
        "UPDATE stored_events SET state = ? WHERE originator_id = ? AND originator_version = ?",
        state,
        session_id,
        version,
    )
