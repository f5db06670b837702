"""Connections to the schema of a PostgreSQL database that holds attachments."""

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from everfold.session.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreUrlError,
)

Connection = psycopg.Connection[TupleRow]

_CONNECT_TIMEOUT_S = "10"
_MEANING: tuple[tuple[str, type[StoreError], str], ...] = (
    ("55P03", StoreBusyError, "other writers held the rows for the whole wait"),
    ("57014", StoreBusyError, "the statement was cancelled"),
    ("40", StoreBusyError, "the transaction was rolled back"),
    ("25006", StoreReadOnlyError, "it is open for reading only"),
    ("42501", StoreReadOnlyError, "the role may not do this"),
    ("53100", StoreFullError, "the disk is full; nothing was stored"),
)


class OriginalGoneError(Exception):
    """A row refers to an attachment that is not there."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which schema of which database.

    Attributes:
        conninfo: libpq's connection string; it may hold a password and is never shown.
        name: what to call it, without the password.
    """

    conninfo: str
    name: str
    schema: str
    lock_timeout_s: float
    pool_size: int

    def __repr__(self) -> str:
        return f"<Target {self.name}>"


def target_of(url: str) -> Target:
    """Return what a URL names: libpq's, with the options `schema`, `lock_timeout_s`, `pool_size`.

    Raises:
        StoreUrlError: it is not understood, or an option is not a number above 0; no password is
            in the message.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise StoreUrlError(f"{parts.scheme or 'this'!r} is not a PostgreSQL URL: postgresql://…")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = query.pop("schema", "") or "everfold"
    lock_timeout_s = _number(query.pop("lock_timeout_s", "30"), "lock_timeout_s")
    pool_size = int(_number(query.pop("pool_size", "10"), "pool_size"))
    place = parts.netloc.rpartition("@")[2] or query.get("host", "")
    return Target(
        _conninfo(urlunsplit(parts._replace(query=urlencode(query)))),
        f"postgresql://{place}{parts.path}?schema={schema}",
        schema,
        lock_timeout_s,
        pool_size,
    )


def _conninfo(url: str) -> str:
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
    return make_conninfo("", **{"connect_timeout": _CONNECT_TIMEOUT_S} | found)


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1e-3 <= number <= 1e6:
        raise StoreUrlError(f"store URL option {name}={text!r} is not a number above 0")
    return number


class Connections:
    """Connections in autocommit mode, opened when needed and used again; a forked child makes its own."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._free = threading.Semaphore(max(1, target.pool_size))
        self._idle: list[Connection] = []
        self._pid = os.getpid()
        self._is_closed = False

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """Yield a connection that nobody else has; the driver's errors become a store's.

        Raises:
            StoreError: one of its classes; the transaction was rolled back.
            OriginalGoneError: a row refers to an attachment that is not there.
        """
        if self._is_closed:
            raise StoreUnavailableError(f"{self.target.name}: the store of attachments is closed")
        if not self._free.acquire(timeout=self.target.lock_timeout_s):
            raise StoreBusyError(
                f"{self.target.name}: all {self.target.pool_size} connections were in use for "
                f"{self.target.lock_timeout_s:g} s; give the URL a larger pool_size"
            )
        try:
            with self._lent() as connection:
                yield connection
        except psycopg.errors.ForeignKeyViolation as error:
            raise OriginalGoneError from error
        except psycopg.Error as error:
            raise _translated(error, self.target.name) from error
        finally:
            self._free.release()

    def close(self) -> None:
        """Close every idle connection; nothing can be asked of the store afterwards."""
        self._is_closed = True
        while self._idle and self._pid == os.getpid():
            self._idle.pop().close()

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        connection = self._taken()
        try:
            yield connection
        except BaseException:
            # Whatever broke it has most likely broken the others; opening one is cheap.
            connection.close()
            raise
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _taken(self) -> Connection:
        if self._pid != os.getpid():
            # The parent's sockets: closing them here would end its sessions.
            self._pid, self._idle = os.getpid(), []
        while self._idle:
            connection = self._idle.pop()
            if _is_alive(connection):
                return connection
            connection.close()
        return self._opened()

    def _opened(self) -> Connection:
        connection = psycopg.connect(self.target.conninfo, autocommit=True)
        # Prepared statements would not survive a connection pooler in between.
        connection.prepare_threshold = None
        try:
            connection.execute(
                "SELECT set_config('search_path', quote_ident(%s), false),"
                " set_config('lock_timeout', %s, false)",
                (self.target.schema, f"{max(1, round(self.target.lock_timeout_s * 1000))}ms"),
            )
        except BaseException:
            connection.close()
            raise
        return connection


def _is_alive(connection: Connection) -> bool:
    # An idle server says nothing: if there is something to read, the connection was closed.
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def _translated(error: psycopg.Error, name: str) -> StoreError:
    state, text = error.sqlstate, str(error).strip()
    for prefix, kind, reason in _MEANING:
        if state is not None and state.startswith(prefix):
            return kind(f"{name}: {reason} ({text})")
    if state is None or state.startswith(("08", "28", "3D", "53", "57P", "58")):
        return StoreUnavailableError(f"{name}: the server does not answer ({text})")
    return StoreError(f"{name}: PostgreSQL refused ({text})")
