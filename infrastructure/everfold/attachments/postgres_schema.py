"""Bringing a PostgreSQL schema to what this program's attachments need: the only place that creates tables."""

import time
from importlib.resources import files

from everfold.attachments.postgres_connections import Connection, Connections
from everfold.session.errors import ForeignDatabaseError, SchemaVersionError, StoreUnavailableError


def shipped() -> list[tuple[int, str, str]]:
    """Return number, name and SQL of every migration, in order."""
    folder = files("everfold.attachments") / "migrations" / "postgres"
    found = []
    for file in folder.iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append((int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found)


def prepare(connections: Connections, *, create: bool) -> None:
    """Check that the schema is the one this program works with; bring it there if `create`.

    Several processes may do this at once: one transaction does the work, the others wait.

    Raises:
        StoreUnavailableError: there are no attachments, and none are to be created.
        SchemaVersionError: the schema is newer than this program, or older and `create` is False.
        ForeignDatabaseError: the schema has such tables of another program; they were not touched.
    """
    name, schema = connections.target.name, connections.target.schema
    latest = shipped()[-1][0]
    with connections.using() as connection:
        if _stored(connection, name) == latest:
            return
        if not create:
            raise StoreUnavailableError(
                f"{name} has no attachments at schema version {latest}; open it once for writing"
            )
        with connection.transaction():
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('everfold-attachments:' || %s, 0))",
                (schema,),
            )
            _migrate(connection, name, schema)


def _migrate(connection: Connection, name: str, schema: str) -> None:
    known = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
    if known.fetchone() is None:
        quoted = schema.replace('"', '""')
        connection.execute(f'CREATE SCHEMA "{quoted}"'.encode())
    stored = _stored(connection, name)
    for version, title, sql in shipped():
        if version > stored:
            connection.execute(sql.encode())
            connection.execute(
                "INSERT INTO attachment_schema VALUES (%s, %s, %s)",
                (version, title, int(time.time() * 1000)),
            )


def _stored(connection: Connection, name: str) -> int:
    row = connection.execute(
        "SELECT to_regclass('attachment_schema') IS NOT NULL,"
        " to_regclass('attachment_objects') IS NOT NULL"
    ).fetchone()
    is_ours, is_used = row or (False, False)
    if is_used and not is_ours:
        raise ForeignDatabaseError(
            f"{name} has a table attachment_objects that everfold did not make; name another schema"
        )
    if not is_ours:
        return 0
    cursor = connection.execute("SELECT coalesce(max(version), 0) FROM attachment_schema")
    version = int(cursor.fetchall()[0][0])
    latest = shipped()[-1][0]
    if version > latest:
        raise SchemaVersionError(
            f"{name} has attachments of schema version {version}, this program knows {latest}; "
            "use a newer everfold"
        )
    return version
