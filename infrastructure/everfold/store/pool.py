"""A bounded pool of connections, for one process."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from everfold.session.errors import StoreBusyError, StoreUnavailableError

C = TypeVar("C")

_FRESH_S = 1.0
"""A connection that was used so shortly ago is not looked at again."""


class Pool(Generic[C]):
    """Connections that are opened when they are needed and used again, the warmest first.

    No threads, no waiting for a server that is not there: a failure to connect is the caller's.

    Args:
        connect: opens a connection.
        close: closes one.
        is_fresh: whether one that was idle for a while is still good.
        size: how many may be in use at once.
        timeout_s: how long to wait for one.
    """

    def __init__(
        self,
        connect: Callable[[], C],
        close: Callable[[C], None],
        *,
        is_fresh: Callable[[C], bool],
        size: int,
        timeout_s: float,
    ) -> None:
        self._connect = connect
        self._close = close
        self._is_fresh = is_fresh
        self._size = size
        self._timeout_s = timeout_s
        self._idle: deque[tuple[C, float]] = deque()
        self._changed = threading.Condition()
        self._open = 0
        self._waiting = 0
        self._pid = os.getpid()
        self._is_closed = False

    def take(self) -> C:
        """Return a connection that nobody else has; give it back.

        Raises:
            StoreBusyError: all were in use for the whole wait.
            StoreUnavailableError: the store is closed, or was opened before a fork.
        """
        check_usable(self._pid, self._is_closed)
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                if self._may_open():
                    return self._opened()
                continue
            if time.monotonic() - since < _FRESH_S or self._is_fresh(connection):
                return connection
            self.give(connection, is_usable=False)

    def _may_open(self) -> bool:
        """Wait until there is an idle connection or one may be opened; return whether to open one."""
        deadline = time.monotonic() + self._timeout_s
        with self._changed:
            self._waiting += 1
            try:
                while not self._idle and self._open >= self._size:
                    if not self._changed.wait(deadline - time.monotonic()):
                        raise StoreBusyError(
                            f"all {self._size} connections were in use for {self._timeout_s:g} s; "
                            "give the store URL a larger pool_size"
                        )
                if self._idle:
                    return False
                self._open += 1
                return True
            finally:
                self._waiting -= 1

    def _opened(self) -> C:
        try:
            return self._connect()
        except BaseException:
            self._closed_one()
            raise

    def _closed_one(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify()

    def check(self) -> None:
        """Raise if the pool cannot be used any more.

        Raises:
            StoreUnavailableError: the store is closed, or was opened before a fork.
        """
        check_usable(self._pid, self._is_closed)

    def give(self, connection: C, *, is_usable: bool = True) -> None:
        """Take a connection back; one that is not usable is closed."""
        if not is_usable or self._is_closed:
            self._close(connection)
            self._closed_one()
            return
        self._idle.append((connection, time.monotonic()))
        # Whoever waits has counted itself before it looked for an idle one.
        if self._waiting:
            with self._changed:
                self._changed.notify()

    def drop_idle(self) -> None:
        """Close the connections that nobody uses."""
        while True:
            try:
                connection, _ = self._idle.pop()
            except IndexError:
                return
            self.give(connection, is_usable=False)

    def close(self) -> None:
        """Close idle connections now, the others when they come back."""
        self._is_closed = True
        if self._pid == os.getpid():
            self.drop_idle()


def check_usable(pid: int, is_closed: bool) -> None:
    """Raise if a store is closed or belongs to another process.

    Raises:
        StoreUnavailableError: either of these; a connection that two processes share loses events.
    """
    if is_closed:
        raise StoreUnavailableError("the store is closed")
    if pid != os.getpid():
        raise StoreUnavailableError(
            f"the store was opened by process {pid} before a fork; open it in process {os.getpid()}"
        )
