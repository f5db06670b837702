"""Putting a store on PostgreSQL together."""

from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from everfold.session.errors import StoreUrlError
from everfold.store.mapper import SessionMapper
from everfold.store.migrate import migrate_postgres
from everfold.store.options import Options, parse_options
from everfold.store.postgres_backend import PostgresBackend
from everfold.store.postgres_connections import (
    PostgresSettings,
    SessionPostgresDatastore,
    connect,
)
from everfold.store.postgres_errors import translate
from everfold.store.session_store import DatabaseSessionStore

_OWN_OPTIONS = ("schema", "lock_timeout_s", "pool_size")
_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "everfold",
    # A peer that vanished without a word is noticed within a minute.
    "keepalives_idle": "30",
    "tcp_user_timeout": "60000",
}
_MAX_SCHEMA_BYTES = 63


def open_postgres(
    url: str, mapper: SessionMapper, *, create: bool, read_only: bool
) -> DatabaseSessionStore:
    """Open a store on PostgreSQL at the schema of this program; see `open_store`."""
    settings = settings_of(url, read_only=read_only)
    try:
        with connect(settings) as connection:
            migrate_postgres(connection, settings, create=create)
    except psycopg.Error as error:
        raise translate(error, settings.name) from error
    backend = PostgresBackend(SessionPostgresDatastore(settings))
    return DatabaseSessionStore(backend, mapper, settings.name)


def settings_of(url: str, *, read_only: bool) -> PostgresSettings:
    """Return the settings that a URL means.

    Raises:
        StoreUrlError: it is not understood; no password is in the message.
    """
    parts = urlsplit(url)
    keywords = [option.keyword.decode() for option in Conninfo.get_defaults()]
    options = parse_options(parts.query, (*_OWN_OPTIONS, *keywords))
    own = Options({name: options.pop(name) for name in _OWN_OPTIONS if name in options})
    conninfo = _conninfo(urlunsplit(parts._replace(query=""))) | options
    schema = own.read("schema", "everfold", _schema, "a schema name of 1 to 63 bytes")
    return PostgresSettings(
        conninfo=make_conninfo("", **(_DEFAULTS | conninfo)),
        name=_public_name(conninfo, schema),
        schema=schema,
        lock_timeout_s=own.lock_timeout_s(),
        pool_size=own.pool_size(),
        read_only=read_only,
    )


def _conninfo(url: str) -> dict[str, str]:
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:
        # The driver's message may quote a part of the password.
        found = None
    if found is None:
        raise StoreUrlError(
            "the PostgreSQL URL is not understood; it has the form "
            "postgresql://user:password@host:port/database?schema=name, with every special "
            "character of a part written as %XX"
        )
    return {name: str(value) for name, value in found.items()}


def _public_name(conninfo: dict[str, str], schema: str) -> str:
    user = f"{conninfo['user']}@" if "user" in conninfo else ""
    host = conninfo.get("host", conninfo.get("hostaddr", ""))
    port = f":{conninfo['port']}" if "port" in conninfo else ""
    return f"postgresql://{user}{host}{port}/{conninfo.get('dbname', '')}?schema={schema}"


def _schema(text: str) -> str:
    if not 1 <= len(text.encode()) <= _MAX_SCHEMA_BYTES or "\0" in text:
        raise ValueError(text)
    return text
