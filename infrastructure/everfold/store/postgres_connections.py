"""Connections to one schema of a PostgreSQL database."""

import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import md5
from types import TracebackType
from typing import Any, Self, cast

import psycopg
from eventsourcing import persistence
from eventsourcing.postgres import PostgresDatastore
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, TupleRow, dict_row, tuple_row

from everfold.session.errors import StoreUnavailableError
from everfold.store.pool import Pool
from everfold.store.postgres_arrays import register
from everfold.store.postgres_errors import translate

_IDLE = TransactionStatus.IDLE

OLDEST_SERVER = 140_000
"""PostgreSQL 14, as the server says it."""

_SESSION = (
    "SELECT set_config('search_path', quote_ident(%s), false),"
    " set_config('lock_timeout', %s, false),"
    " set_config('default_transaction_read_only', %s, false),"
    " set_config('default_transaction_isolation', 'read committed', false),"
    # Every statement finds its rows in order by an index. Left to itself, a server whose statistics
    # are old (a new stream, an import) scans and sorts instead: a fork takes twice as long.
    " set_config('enable_sort', 'off', false), set_config('enable_seqscan', 'off', false),"
    " set_config('enable_bitmapscan', 'off', false),"
    # A sort that cannot be done without then looks so dear that it is compiled, for 200 ms each time.
    " set_config('jit', 'off', false)"
)


class Connection(psycopg.Connection[TupleRow]):
    """A connection that knows which calls were prepared on it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepared: set[bytes] = set()


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """Which schema of which database, and how it is used.

    Attributes:
        conninfo: libpq's connection string; it may hold a password and is never shown.
        name: what to call the store, without the password.
        lock_timeout_s: the longest wait for other writers, and for a connection.
    """

    conninfo: str
    name: str
    schema: str = "everfold"
    lock_timeout_s: float = 30.0
    pool_size: int = 10
    read_only: bool = False

    def __repr__(self) -> str:
        return f"<PostgresSettings {self.name}>"

    @property
    def channel(self) -> str:
        """The channel that says that something was stored; each schema has its own."""
        return f"everfold_{md5(self.schema.encode(), usedforsecurity=False).hexdigest()}"


def connect(settings: PostgresSettings) -> Connection:
    """Open a connection in autocommit mode: one statement is one transaction and one round trip.

    Raises:
        StoreError: there is no connection, so nothing was sent; or the server is older than
            PostgreSQL 14.
    """
    try:
        connection = Connection.connect(settings.conninfo, autocommit=True)
    except psycopg.Error as error:
        raise translate(error, settings.name) from error
    try:
        _prepare(connection, settings)
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise translate(error, settings.name) from error
        raise
    return connection


def _prepare(connection: Connection, settings: PostgresSettings) -> None:
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        raise StoreUnavailableError(
            f"{settings.name} is PostgreSQL {version // 10_000}; version 14 or later is needed"
        )
    lock_timeout = f"{max(1, round(settings.lock_timeout_s * 1000))}ms"
    read_only = "on" if settings.read_only else "off"
    connection.execute(_SESSION, (settings.schema, lock_timeout, read_only))
    register(connection)


def is_idle(connection: Connection) -> bool:
    """Return whether a connection is open and outside a transaction."""
    return not connection.closed and connection.pgconn.transaction_status == _IDLE


def is_fresh(connection: Connection) -> bool:
    """Return whether an idle connection still looks alive.

    An idle server says nothing: if there is something to read, the connection was closed.
    """
    if not is_idle(connection):
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


class SessionPostgresDatastore(PostgresDatastore):
    """The library's datastore with a pool of ours.

    What it is for (docs/decisions/0011): the library's pool waits 30 s for a server that
    is not there and its recorders repeat that ten times; it opens five connections at once and
    hands out dead ones. Type adapters are not needed, as nothing is sent as a composite.
    """

    def __init__(self, settings: PostgresSettings) -> None:
        # The library's own pool is made here, but never opened.
        super().__init__("", "", "", "", "", schema=settings.schema, originator_id_type="text")
        self.settings = settings
        self.connections = Pool(
            lambda: connect(settings),
            _close,
            is_fresh=is_fresh,
            size=settings.pool_size,
            timeout_s=settings.lock_timeout_s,
        )

    def register_type_adapters(self) -> None:
        """Do nothing: there are no composite types."""

    def using(self) -> "Using":
        """Return a context manager: a connection in autocommit mode."""
        return Using(self.connections)

    @contextmanager
    def get_connection(self) -> Iterator[psycopg.Connection[DictRow]]:
        """The library's door: a connection whose rows are dictionaries, and the library's errors."""
        try:
            with self.using() as connection:
                rows = cast("psycopg.Connection[DictRow]", connection)
                rows.row_factory = dict_row
                try:
                    yield rows
                finally:
                    connection.row_factory = tuple_row
        except psycopg.Error as error:
            raise library_error(error) from error

    def __enter__(self) -> Self:
        """Return the datastore; connections are opened when they are needed."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        """Close every connection."""
        self.close()

    def close(self) -> None:
        """Close every connection."""
        if hasattr(self, "connections"):
            self.connections.close()


class Using:
    """A connection of the pool for the length of a `with` block."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Pool[Connection]) -> None:
        self._pool = pool

    def __enter__(self) -> Connection:
        connection = self._pool.take()
        self._connection = connection
        return connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        connection = self._connection
        self._pool.give(connection, is_usable=is_idle(connection))
        if kind is not None and connection.closed:
            # What closed this one has most likely closed the others.
            self._pool.drop_idle()


def _close(connection: Connection) -> None:
    connection.close()


_LIBRARY_ERRORS: tuple[tuple[type[psycopg.Error], type[persistence.PersistenceError]], ...] = (
    (psycopg.InterfaceError, persistence.InterfaceError),
    (psycopg.OperationalError, persistence.OperationalError),
    (psycopg.DataError, persistence.DataError),
    (psycopg.IntegrityError, persistence.IntegrityError),
    (psycopg.InternalError, persistence.InternalError),
    (psycopg.ProgrammingError, persistence.ProgrammingError),
    (psycopg.NotSupportedError, persistence.NotSupportedError),
    (psycopg.DatabaseError, persistence.DatabaseError),
)


def library_error(error: psycopg.Error) -> persistence.PersistenceError:
    """Return the library's error for one of the driver's."""
    for theirs, ours in _LIBRARY_ERRORS:
        if isinstance(error, theirs):
            return ours(str(error))
    return persistence.PersistenceError(str(error))
