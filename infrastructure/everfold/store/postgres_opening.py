"""Putting a store on PostgreSQL together."""

from contextlib import suppress
from urllib.parse import urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from everfold.session.errors import StoreUrlError
from everfold.store.mapper import SessionMapper
from everfold.store.migrate import migrate_postgres
from everfold.store.options import Options, parse_options, split
from everfold.store.postgres_backend import PostgresBackend
from everfold.store.postgres_connections import PostgresSettings, SessionPostgresDatastore
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
    datastore = SessionPostgresDatastore(settings)
    try:
        with datastore.using() as connection:
            migrate_postgres(connection, settings, create=create)
    except BaseException as error:
        datastore.close()
        if isinstance(error, psycopg.Error):
            raise translate(error, settings.name) from error
        raise
    return DatabaseSessionStore(PostgresBackend(datastore), mapper, settings.name)


def settings_of(url: str, *, read_only: bool) -> PostgresSettings:
    """Return the settings that a URL means.

    Raises:
        StoreUrlError: it is not understood; no password is in the message.
    """
    parts = split(url)
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
    # The driver's message is dropped: it may quote a part of the password.
    with suppress(psycopg.Error):
        return {name: str(value) for name, value in conninfo_to_dict(url).items()}
    raise StoreUrlError(
        "the PostgreSQL URL is not understood; it has the form "
        "postgresql://user:password@host:port/database?schema=name, with every special "
        "character of a part written as %XX"
    )


def _public_name(conninfo: dict[str, str], schema: str) -> str:
    user = f"{conninfo['user']}@" if "user" in conninfo else ""
    host = conninfo.get("host", conninfo.get("hostaddr", ""))
    port = f":{conninfo['port']}" if "port" in conninfo else ""
    return f"postgresql://{user}{host}{port}/{conninfo.get('dbname', '')}?schema={schema}"


def _schema(text: str) -> str:
    if not 1 <= len(text.encode()) <= _MAX_SCHEMA_BYTES or "\0" in text:
        raise ValueError(text)
    return text
