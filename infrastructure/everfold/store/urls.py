"""Opening a store by its URL."""

import os
from pathlib import Path
from urllib.parse import unquote

from everfold.session.errors import StoreUrlError
from everfold.store.mapper import SessionMapper
from everfold.store.options import Options, parse_options, split
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.sqlite_connections import SqliteSettings
from everfold.store.sqlite_opening import open_sqlite

_FORMS = "sqlite:///relative.db, sqlite:////absolute.db, sqlite:// (in memory), postgresql://…"
_SYNCHRONOUS = ("full", "normal", "off")
_SQLITE_OPTIONS = ("synchronous", "lock_timeout_s", "pool_size")


def open_store(
    url: str,
    *,
    create: bool = True,
    read_only: bool = False,
    mapper: SessionMapper | None = None,
) -> DatabaseSessionStore:
    """Open the store that a URL names, at the schema of this program.

    `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (private, in memory) with the
    options `synchronous` (`full`, `normal`, `off`), `lock_timeout_s` and `pool_size`;
    `postgresql://user@host/database` with libpq's own parameters and the options `schema`,
    `lock_timeout_s` and `pool_size`. A file or a schema is a store of its own.

    Args:
        create: make the store if there is none; never with `read_only`.
        read_only: refuse to write, in the database as well as here.
        mapper: compresses or encrypts what is stored.

    Raises:
        StoreUrlError: the URL is not understood, or its driver is not installed.
        StoreUnavailableError: there is no such store, or its server does not answer.
        ForeignDatabaseError: the database belongs to another program; it was not touched.
        SchemaVersionError: a newer everfold made it; it was not touched.
    """
    scheme = url.partition("://")[0] if "://" in url else ""
    mapper = mapper or SessionMapper()
    create = create and not read_only
    if scheme == "sqlite":
        settings = _sqlite_settings(url, read_only=read_only)
        return open_sqlite(settings, mapper, create=create)
    if scheme in {"postgresql", "postgres"}:
        return _open_postgres(url, mapper, create=create, read_only=read_only)
    what = f"scheme {scheme!r} is unknown" if scheme else "it has no scheme"
    # The URL itself may hold a password.
    raise StoreUrlError(f"the store URL is not understood: {what}; the forms are {_FORMS}")


def _sqlite_settings(url: str, *, read_only: bool) -> SqliteSettings:
    parts = split(url)
    if parts.netloc or parts.fragment:
        raise StoreUrlError(
            f"{url!r} names no SQLite file; write three slashes before a relative path, four before "
            "an absolute one, and %23 for a #"
        )
    options = Options(parse_options(parts.query, _SQLITE_OPTIONS))
    name = unquote(parts.path.removeprefix("/"), errors="surrogateescape")
    if "\0" in name:
        raise StoreUrlError(f"{url!r} names no SQLite file: no path holds a NUL")
    return SqliteSettings(
        path=None if name in {"", ":memory:"} else Path(os.path.abspath(name)),
        synchronous=options.read("synchronous", "full", _synchronous, " or ".join(_SYNCHRONOUS)),
        lock_timeout_s=options.lock_timeout_s(),
        pool_size=options.pool_size(),
        read_only=read_only,
    )


def _open_postgres(
    url: str, mapper: SessionMapper, *, create: bool, read_only: bool
) -> DatabaseSessionStore:
    try:
        from everfold.store import postgres_opening
    except ImportError as error:
        raise StoreUrlError(
            f"PostgreSQL needs its driver ({error}); install it with: pip install 'everfold[postgres]'"
        ) from error
    return postgres_opening.open_postgres(url, mapper, create=create, read_only=read_only)


def _synchronous(text: str) -> str:
    if text.lower() not in _SYNCHRONOUS:
        raise ValueError(text)
    return text.lower()
