"""Bringing a database to the schema of this program: the only place that creates tables.

A migration is a file `NNNN_name.sql` in `migrations/<database>/`. It runs once, in order, inside the
one transaction that records it; whoever comes second waits, and finds it done.
"""

import sqlite3
import time
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from everfold.session.errors import ForeignDatabaseError, SchemaVersionError, StoreUnavailableError
from everfold.store.sqlite_connections import SqliteSettings, connect
from everfold.store.sqlite_files import (
    APPLICATION_ID,
    create_file,
    refuse_newer,
    stored_schema_version,
)
from everfold.store.write_turn import WriteTurn

if TYPE_CHECKING:
    from everfold.store.postgres_connections import Connection, PostgresSettings


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: from schema version `version - 1` to `version`."""

    version: int
    name: str
    sql: str


@cache
def migrations(database: str) -> tuple[Migration, ...]:
    """Return the shipped migrations of `sqlite` or `postgres`, in order."""
    folder = files("everfold.store") / "migrations" / database
    found = []
    for file in folder.iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


def latest_version(database: str) -> int:
    """Return the schema version that this program works with."""
    return migrations(database)[-1].version


def _outdated(name: str, stored: int, database: str) -> SchemaVersionError:
    return SchemaVersionError(
        f"{name} has schema version {stored}, version {latest_version(database)} is needed; "
        "open it once for writing"
    )


def migrate_sqlite(settings: SqliteSettings, *, create: bool) -> None:
    """Make an SQLite file ready for use, creating it if that is asked for.

    Raises:
        ForeignDatabaseError: the file is not ours; it was not touched.
        SchemaVersionError: a newer everfold made it; it was not touched.
        StoreUnavailableError: there is none, and it is not to be created.
    """
    if settings.path is None:
        return
    stored = _settled_version(settings, settings.path)
    if stored is None and not create:
        raise StoreUnavailableError(f"there is no store at {settings.path}")
    refuse_newer(str(settings.path), stored or 0, latest_version("sqlite"))
    if stored is None:
        create_file(settings.path)
    if stored is not None and stored_in_wal(settings) == latest_version("sqlite"):
        return
    if settings.read_only:
        raise _outdated(settings.name, stored or 0, "sqlite")
    _migrate_file(settings, settings.path)


def _settled_version(settings: SqliteSettings, path: Path) -> int | None:
    try:
        return stored_schema_version(path)
    except ForeignDatabaseError:
        # A file that is being made right now looks foreign for a moment; ours has lock files.
        turn = WriteTurn.of_existing(str(path), settings.lock_timeout_s)
        if turn is None:
            raise
    try:
        with turn:
            return stored_schema_version(path, is_ours=True)
    finally:
        turn.close()


def stored_in_wal(settings: SqliteSettings) -> int:
    """Return the schema version with what the WAL holds; refuse a newer one.

    A read-only connection does not fold the WAL into the file when it closes.
    """
    connection = connect(settings, mode="ro")
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()
    refuse_newer(settings.name, version, latest_version("sqlite"))
    return version


def _migrate_file(settings: SqliteSettings, path: Path) -> None:
    turn = WriteTurn(str(path), settings.lock_timeout_s)
    try:
        with turn:
            # Somebody else may have made another database of it meanwhile.
            stored_schema_version(path, is_ours=True)
            connection = connect(settings, mode="rw")
            try:
                apply_to_sqlite(connection)
                connection.execute("PRAGMA journal_mode=WAL")
            finally:
                connection.close()
    finally:
        turn.close()


def apply_to_sqlite(connection: sqlite3.Connection) -> None:
    """Run the migrations that a database lacks, in one transaction."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        stored = int(connection.execute("PRAGMA user_version").fetchone()[0])
        for migration in migrations("sqlite"):
            if migration.version > stored:
                _apply(connection, migration)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    # Not executescript(): it would commit first.
    for statement in statements(migration.sql):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO everfold_schema VALUES (?, ?, ?)",
        (migration.version, migration.name, int(time.time() * 1000)),
    )
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={migration.version}")


def statements(sql: str) -> list[str]:
    """Return the single statements of an SQLite script."""
    found = []
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found


_RELATIONS = (
    "SELECT coalesce(bool_or(relname = 'everfold_schema'), false),"
    " count(*) FILTER (WHERE NOT starts_with(relname, 'attachment_')) > 0 FROM pg_class"
    " JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s"
)


def migrate_postgres(
    connection: "Connection", settings: "PostgresSettings", *, create: bool
) -> None:
    """Make a schema of a PostgreSQL database ready for use, creating it if that is asked for.

    Raises:
        ForeignDatabaseError: there are tables in it, and they are not ours; nothing was touched.
        SchemaVersionError: a newer everfold made it; nothing was touched.
        StoreUnavailableError: there is none, and it is not to be created.
    """
    stored = _postgres_version(connection, settings)
    if stored == latest_version("postgres"):
        return
    if stored is None and not create:
        raise StoreUnavailableError(f"there is no store at {settings.name}")
    if settings.read_only:
        raise _outdated(settings.name, stored or 0, "postgres")
    with connection.transaction():
        # Processes that start together wait here for the first one.
        connection.execute("SELECT pg_advisory_xact_lock(1702258278)")
        stored = _postgres_version(connection, settings)
        if stored is None:
            _create_schema(connection, settings.schema)
        for migration in migrations("postgres"):
            if migration.version > (stored or 0):
                connection.execute(migration.sql.encode())
                connection.execute(
                    "INSERT INTO everfold_schema VALUES (%s, %s, %s)",
                    (migration.version, migration.name, int(time.time() * 1000)),
                )


def _create_schema(connection: "Connection", schema: str) -> None:
    # CREATE SCHEMA IF NOT EXISTS asks for the right to create even where the schema is there.
    there = connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,))
    if there.rowcount == 0:
        name = schema.replace('"', '""')
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())


def _postgres_version(connection: "Connection", settings: "PostgresSettings") -> int | None:
    # One statement, so that a schema that is being made is seen as a whole or not at all.
    row = connection.execute(_RELATIONS, (settings.schema,)).fetchone()
    has_ours, has_any = row or (False, False)
    if has_ours:
        newest = connection.execute("SELECT max(version) FROM everfold_schema").fetchone()
        version = int(newest[0] or 0) if newest else 0
        refuse_newer(settings.name, version, latest_version("postgres"))
        return version
    if has_any:
        raise ForeignDatabaseError(
            f"{settings.name}: schema {settings.schema!r} holds tables of another program; "
            "name another one with ?schema="
        )
    return None
