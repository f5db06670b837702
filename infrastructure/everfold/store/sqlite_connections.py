"""Connections to one SQLite database: one that writes, in turns, and several that read."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from weakref import ref

from eventsourcing.sqlite import SQLiteCursor, SQLiteDatastore

from everfold.session.errors import StoreBusyError, StoreReadOnlyError
from everfold.store.pool import Pool, check_usable
from everfold.store.sqlite_files import FrozenMark, frozen_mark, uri_of
from everfold.store.write_turn import TurnTimeoutError, WriteTurn

_WAL_LIMIT_BYTES = 16 * 1024 * 1024
_CHECKPOINT_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """Which database, and how it is used.

    Attributes:
        path: the file; None is a private database in memory.
        synchronous: `full` syncs every commit, `normal` may lose the last ones when the power
            fails, `off` leaves it to the system.
        lock_timeout_s: the longest wait for other writers.
        pool_size: how many threads may read at once.
    """

    path: Path | None
    synchronous: str = "full"
    lock_timeout_s: float = 30.0
    pool_size: int = 10
    read_only: bool = False

    @property
    def name(self) -> str:
        """What to call the database in messages."""
        return "the database in memory" if self.path is None else str(self.path)


class StoreConnection(sqlite3.Connection):
    """A connection to a store's database.

    Attributes:
        frozen_as: the mark of the file if it was opened as one that nobody writes.
    """

    frozen_as: FrozenMark | None = None


def connect(settings: SqliteSettings, *, mode: str) -> StoreConnection:
    """Open a connection in autocommit mode.

    Args:
        mode: `ro`, `rw` or `rwc`, as in SQLite's URIs.

    Raises:
        StoreReadOnlyError: what is newest cannot be read, as nothing may be written there.
    """
    path = settings.path
    mark = None if path is None or mode != "ro" else frozen_mark(path)
    frozen = {} if mark is None else {"immutable": "1"}
    connection = sqlite3.connect(
        ":memory:" if path is None else uri_of(path, mode=mode, **frozen),
        uri=path is not None,
        isolation_level=None,
        check_same_thread=False,
        timeout=settings.lock_timeout_s,
        factory=StoreConnection,
    )
    connection.frozen_as = mark
    connection.execute(f"PRAGMA synchronous={settings.synchronous}")
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


class SessionSQLiteDatastore(SQLiteDatastore):
    """The library's datastore with one writer in turn, readers that never wait, and our settings.

    What it is for (docs/decisions/0011): `BEGIN IMMEDIATE` for every write, so that no
    transaction reads first and fails to write later; waits that are fair between processes and
    last 30 s; `synchronous` by setting; readers that do not queue behind a waiting writer, as they
    do in the library's pool.
    """

    def __init__(self, settings: SqliteSettings) -> None:
        super().__init__(db_name=":memory:", originator_id_type="text")
        self.settings = settings
        self._turn = WriteTurn(
            None if settings.path is None else str(settings.path), settings.lock_timeout_s
        )
        self._readers = Pool(
            self.open_reader,
            _close,
            is_fresh=lambda _: True,
            size=settings.pool_size,
            timeout_s=settings.lock_timeout_s,
        )
        self._writer: StoreConnection | None = None
        self._writing: Callable[[], Writing | None] = _nobody
        self._pid = os.getpid()
        self._is_closed = False
        self._followers: set[threading.Event] = set()

    def open_reader(self) -> StoreConnection:
        """Open one more connection that only reads; the caller closes it."""
        connection = connect(self.settings, mode="ro" if self.settings.read_only else "rw")
        connection.execute("PRAGMA query_only=ON")
        return connection

    def writing(self) -> "Writing":
        """Return a context manager: a transaction that holds the write lock."""
        return Writing(self)

    def reading(self) -> "Reading":
        """Return a context manager: a connection for single SELECT statements."""
        return Reading(self)

    def begin_turn(self, writing: "Writing | None" = None) -> sqlite3.Connection:
        """Wait for the writers' turn; return the writer's connection, outside a transaction.

        Args:
            writing: who has the turn from now on; once it is forgotten, so is its transaction.

        Raises:
            StoreBusyError: this thread is in the middle of a transaction, as a signal handler may
                find it.
        """
        check_usable(self._pid, self._is_closed)
        if self.settings.read_only:
            raise StoreReadOnlyError(f"{self.settings.name} was opened read-only")
        self._check_idle()
        try:
            self._turn.__enter__()
            self._writing = _nobody if writing is None else ref(writing)
            writer = self.writer()
            _roll_back(writer)
        except BaseException:
            self.end_turn()
            raise
        return writer

    def _check_idle(self) -> None:
        if self._turn.is_held_here and self._writing() is not None:
            raise StoreBusyError(f"{self.settings.name}: this thread is writing; go on after it")

    def end_turn(self) -> None:
        """Roll back what is not committed, and let the next writer have its turn, if this one has it."""
        try:
            if self._turn.is_held_here and self._writer is not None:
                _roll_back(self._writer)
        finally:
            self._turn.leave()

    def writer(self) -> StoreConnection:
        """Return the writer's connection; the caller has the turn."""
        if self._writer is None:
            self._writer = connect(self.settings, mode="rw")
            if self.settings.path is not None:
                self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT_BYTES}")
            # What is deleted is overwritten, in the file and so in the log of changes.
            self._writer.execute("PRAGMA secure_delete=ON")
        return self._writer

    def is_current(self, connection: StoreConnection) -> bool:
        """Tell whether a connection for reading still shows what the database holds."""
        path, mark = self.settings.path, connection.frozen_as
        return mark is None or path is None or frozen_mark(path) == mark

    def take_reader(self) -> StoreConnection:
        """Return a connection for reading; a database in memory has one for all."""
        if self.settings.path is not None:
            while not self.is_current(reader := self._readers.take()):
                self._readers.give(reader, is_usable=False)
            return reader
        check_usable(self._pid, self._is_closed)
        self._check_idle()
        self._turn.__enter__()
        self._writing = _nobody
        return self.writer()

    def give_reader(self, connection: StoreConnection) -> None:
        """Take back a connection for reading.

        Raises:
            StoreBusyError: the file was taken for one that nobody writes, and somebody wrote it.
        """
        if self.settings.path is None:
            self.end_turn()
            return
        is_current = self.is_current(connection)
        self._readers.give(connection, is_usable=is_current)
        if not is_current:
            raise StoreBusyError(f"{self.settings.name} was written while it was read; read again")

    def empty_wal(self) -> None:
        """Fold the WAL into the file and cut it to nothing.

        Raises:
            StoreBusyError: a reader needed the WAL for the whole wait.
        """
        deadline = time.monotonic() + self.settings.lock_timeout_s
        while self.settings.path is not None and not self._try_to_empty_wal():
            if time.monotonic() >= deadline:
                raise StoreBusyError(
                    f"{self.settings.name}: it is deleted, but a reader kept the old text in the "
                    "write-ahead log; delete it again when nobody reads"
                )
            time.sleep(_CHECKPOINT_PAUSE_S)

    def _try_to_empty_wal(self) -> bool:
        connection = self.begin_turn()
        try:
            # Not the usual wait for a reader: the other writers wait as long.
            connection.execute("PRAGMA busy_timeout=100")
            is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            connection.execute(f"PRAGMA busy_timeout={round(self.settings.lock_timeout_s * 1000)}")
        finally:
            self.end_turn()
        return not is_busy

    def add_follower(self, wake: threading.Event) -> None:
        """Set this event after each commit of this process, until it is removed."""
        self._followers = self._followers | {wake}

    def remove_follower(self, wake: threading.Event) -> None:
        """Undo `add_follower`."""
        self._followers = self._followers - {wake}

    def committed(self) -> None:
        """Wake the followers in this process."""
        for wake in self._followers:
            wake.set()

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        """The library's door: a cursor whose rows have names."""
        with self.writing() if commit else self.reading() as connection:
            cursor = connection.cursor()
            cursor.row_factory = sqlite3.Row
            with SQLiteCursor(cursor) as named:
                yield named  # type: ignore[misc]  # as the library's own transaction() does

    def close(self) -> None:
        """Close all connections; the last one to close folds the WAL into the file."""
        if getattr(self, "_is_closed", True) or self._pid != os.getpid():
            return
        self._is_closed = True
        self._readers.close()
        with suppress(TurnTimeoutError):
            self._close_writer()
        self._turn.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            with self._turn:
                self._writer.close()
                self._writer = None


class Writing:
    """A write transaction in its turn: committed at the end, rolled back on an exception."""

    __slots__ = ("__weakref__", "_connection", "_store")

    def __init__(self, store: SessionSQLiteDatastore) -> None:
        self._store = store

    def __enter__(self) -> sqlite3.Connection:
        self._connection = self._store.begin_turn(self)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._store.end_turn()
            raise
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            self._store.end_turn()
        if kind is None:
            self._store.committed()


class Reading:
    """A connection that reads; each SELECT sees one state of the database."""

    __slots__ = ("_connection", "_store")

    def __init__(self, store: SessionSQLiteDatastore) -> None:
        self._store = store

    def __enter__(self) -> sqlite3.Connection:
        self._connection = self._store.take_reader()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._store.give_reader(self._connection)


def _nobody() -> None:
    """Return that no transaction runs."""


def _roll_back(connection: sqlite3.Connection) -> None:
    # After a refused COMMIT (full disk), or an interrupt, the transaction may still be open.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _close(connection: sqlite3.Connection) -> None:
    connection.close()
