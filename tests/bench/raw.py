"""The raw drivers doing the same durable work: one plain table of the same rows, one transaction."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg.rows import tuple_row

Stored = tuple[str, int, str, bytes]


class Raw(Protocol):
    """A database without us."""

    def insert(self, rows: Sequence[Stored]) -> None: ...
    def select(self, stream: str, after: int = 0) -> int: ...
    def copy(self, source: str, target: str) -> None: ...
    def close(self) -> None: ...


class RawSqlite:
    """The standard library's driver, WAL, synchronous FULL."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(
            "CREATE TABLE events (position INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL,"
            " version INTEGER NOT NULL, topic TEXT NOT NULL, state BLOB NOT NULL,"
            " UNIQUE (stream, version))"
        )

    def insert(self, rows: Sequence[Stored]) -> None:
        """Insert rows in one transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "INSERT INTO events (stream, version, topic, state) VALUES (?, ?, ?, ?)", rows
        )
        self._connection.execute("COMMIT")

    def select(self, stream: str, after: int = 0) -> int:
        """Read a stream's rows; return how many."""
        rows = self._connection.execute(
            "SELECT version, topic, state FROM events WHERE stream = ? AND version > ?"
            " ORDER BY version",
            (stream, after),
        ).fetchall()
        return len(rows)

    def copy(self, source: str, target: str) -> None:
        """Copy a stream inside the database."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(
            "INSERT INTO events (stream, version, topic, state) SELECT ?, version, topic, state"
            " FROM events WHERE stream = ? ORDER BY version",
            (target, source),
        )
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class RawPostgres:
    """psycopg with a prepared statement, binary rows."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self._schema = options.pop("schema")
        plain = parts._replace(query="&".join(f"{k}={v}" for k, v in options.items())).geturl()
        self._connection = psycopg.connect(plain, autocommit=True, row_factory=tuple_row)
        self._connection.execute(f'SET search_path TO "{self._schema}"'.encode())
        self._connection.execute(
            "CREATE TABLE raw_events (position bigserial PRIMARY KEY, stream text NOT NULL,"
            " version bigint NOT NULL, topic text NOT NULL, state bytea NOT NULL,"
            " UNIQUE (stream, version))"
        )

    def insert(self, rows: Sequence[Stored]) -> None:
        """Insert rows in one transaction."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO raw_events (stream, version, topic, state) VALUES (%b, %b, %b, %b)",
                rows,
            )

    def select(self, stream: str, after: int = 0) -> int:
        """Read a stream's rows; return how many."""
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(
                "SELECT version, topic, state FROM raw_events WHERE stream = %s AND version > %s"
                " ORDER BY version",
                (stream, after),
            )
            return len(cursor.fetchall())

    def copy(self, source: str, target: str) -> None:
        """Copy a stream inside the database."""
        self._connection.execute(
            "INSERT INTO raw_events (stream, version, topic, state) SELECT %s, version, topic, state"
            " FROM raw_events WHERE stream = %s ORDER BY version",
            (target, source),
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
