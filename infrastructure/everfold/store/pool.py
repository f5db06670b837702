"""A bounded pool of connections, for one process."""

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from everfold.session.errors import StoreBusyError, StoreUnavailableError

C = TypeVar("C")


class Pool(Generic[C]):
    """Connections that are opened when they are needed and used again, the warmest first.

    No threads, no waiting for a server that is not there: a failure to connect is the caller's.

    Args:
        connect: opens a connection.
        close: closes one.
        size: how many may be in use at once.
        timeout_s: how long to wait for one.
    """

    def __init__(
        self, connect: Callable[[], C], close: Callable[[C], None], size: int, timeout_s: float
    ) -> None:
        self._connect = connect
        self._close = close
        self._size = size
        self._timeout_s = timeout_s
        self._free = threading.Semaphore(size)
        self._idle: deque[C] = deque()
        self._pid = os.getpid()
        self._is_closed = False

    def take(self) -> C:
        """Return a connection that nobody else has; give it back.

        Raises:
            StoreBusyError: all were in use for the whole wait.
            StoreUnavailableError: the store is closed, or was opened before a fork.
        """
        check_usable(self._pid, self._is_closed)
        if not self._free.acquire(timeout=self._timeout_s):
            raise StoreBusyError(
                f"all {self._size} connections were in use for {self._timeout_s:g} s; "
                "give the store URL a larger pool_size"
            )
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._connect()
        except BaseException:
            self._free.release()
            raise

    def check(self) -> None:
        """Raise if the pool cannot be used any more.

        Raises:
            StoreUnavailableError: the store is closed, or was opened before a fork.
        """
        check_usable(self._pid, self._is_closed)

    def give(self, connection: C, *, is_usable: bool = True) -> None:
        """Take a connection back; one that is not usable is closed."""
        if is_usable and not self._is_closed:
            self._idle.append(connection)
        else:
            self._close(connection)
        self._free.release()

    def drop_idle(self) -> None:
        """Close the connections that nobody uses."""
        while True:
            try:
                self._close(self._idle.pop())
            except IndexError:
                return

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
