"""Opening a store by its URL."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from everfold.session.errors import StoreUrlError
from everfold.store.mapper import SessionMapper
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.sqlite_connections import SqliteSettings
from everfold.store.sqlite_opening import open_sqlite

T = TypeVar("T")

_FORMS = "sqlite:///relative.db, sqlite:////absolute.db, sqlite:// (in memory), postgresql://…"
_SYNCHRONOUS = ("full", "normal", "off")
_SQLITE_OPTIONS = ("synchronous", "lock_timeout_s", "pool_size")


@dataclass(frozen=True, slots=True)
class Options:
    """The query of a store URL, read by name, each value checked."""

    values: Mapping[str, str]

    def read(self, name: str, default: T, parse: Callable[[str], T], allowed: str) -> T:
        """Return one option's value.

        Args:
            parse: raises ValueError for what is not allowed.
            allowed: what is, for the message.

        Raises:
            StoreUrlError: the value is not allowed.
        """
        text = self.values.get(name)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise StoreUrlError(f"store URL option {name}={text!r} is not {allowed}") from error

    def lock_timeout_s(self) -> float:
        """Return how long to wait for other writers, in seconds."""
        return self.read("lock_timeout_s", 30.0, _positive, "a number of seconds above 0")

    def pool_size(self) -> int:
        """Return how many connections may be used at once."""
        return self.read("pool_size", 10, _count, "a whole number from 1")


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
    scheme = url.partition(":")[0] if ":" in url else ""
    mapper = mapper or SessionMapper()
    create = create and not read_only
    if scheme == "sqlite":
        settings = _sqlite_settings(url, read_only=read_only)
        return open_sqlite(settings, mapper, create=create)
    if scheme in {"postgresql", "postgres"}:
        return _open_postgres(url, mapper, create=create, read_only=read_only)
    raise StoreUrlError(
        f"a store URL does not start with {scheme or url!r}; the forms are {_FORMS}"
    )


def _sqlite_settings(url: str, *, read_only: bool) -> SqliteSettings:
    parts = urlsplit(url)
    if parts.netloc or parts.fragment:
        raise StoreUrlError(
            f"{url!r} names no SQLite file; write three slashes before a relative path, four before "
            "an absolute one, and %23 for a #"
        )
    options = Options(parse_options(parts.query, _SQLITE_OPTIONS))
    name = unquote(parts.path.removeprefix("/"))
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


def parse_options(query: str, allowed: tuple[str, ...]) -> dict[str, str]:
    """Return the options of a URL's query.

    Raises:
        StoreUrlError: an option is not one of the allowed ones, or stands there twice.
    """
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in allowed:
            raise StoreUrlError(
                f"store URL option {name!r} is unknown; allowed are {', '.join(allowed)}"
            )
        if name in options:
            raise StoreUrlError(f"store URL option {name!r} is given twice")
        options[name] = value
    return options


def _synchronous(text: str) -> str:
    if text.lower() not in _SYNCHRONOUS:
        raise ValueError(text)
    return text.lower()


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise ValueError(text)
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
