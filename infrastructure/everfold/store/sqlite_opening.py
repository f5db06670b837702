"""Putting a store on SQLite together."""

from everfold.store.mapper import SessionMapper
from everfold.store.migrate import apply_to_sqlite, migrate_sqlite
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.sqlite_backend import SqliteBackend
from everfold.store.sqlite_connections import SessionSQLiteDatastore, SqliteSettings
from everfold.store.sqlite_errors import ERRORS, translate
from everfold.store.sqlite_files import warn_of_wal_reset_bug


def open_sqlite(
    settings: SqliteSettings, mapper: SessionMapper, *, create: bool
) -> DatabaseSessionStore:
    """Open a store on SQLite at the schema of this program; see `open_store`."""
    warn_of_wal_reset_bug()
    try:
        datastore = _ready(settings, create=create)
    except ERRORS as error:
        raise translate(error, settings.name) from error
    return DatabaseSessionStore(SqliteBackend(datastore), mapper, f"SQLite {settings.name}")


def _ready(settings: SqliteSettings, *, create: bool) -> SessionSQLiteDatastore:
    if settings.path is not None:
        migrate_sqlite(settings, create=create)
        return SessionSQLiteDatastore(settings)
    datastore = SessionSQLiteDatastore(settings)
    with datastore.reading() as connection:
        apply_to_sqlite(connection)
    return datastore
