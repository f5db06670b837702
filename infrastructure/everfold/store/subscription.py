"""Following the global order for ever."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from everfold.session.errors import StoreUnavailableError
from everfold.session.ports import Notification
from everfold.store.backend import Backend, Follower, GlobalRow

_PAGE_ROWS = 500
_SAFETY_POLL_S = 1.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0


class LogFollowing:
    """The rows of the global order after a position, then those that come, until it is stopped.

    One thread takes rows, without a thread of its own; any thread stops it. A lost connection is
    opened again, with pauses that grow. Nothing that commits late is missed: a row comes when it is
    certain that no later commit can precede it.
    """

    def __init__(self, backend: Backend, after: int, topics: Sequence[str]) -> None:
        self._backend = backend
        self._after = after
        self._topics = tuple(topics)
        self._rows: deque[GlobalRow] = deque()
        self._stopped = threading.Event()
        self._in_use = threading.Lock()
        self._follower: Follower | None = None
        self._pause_s = _FIRST_PAUSE_S

    def next_row(self) -> GlobalRow | None:
        """Return the next row as soon as there is one, None once it is stopped."""
        while not self._stopped.is_set():
            if self._rows:
                return self._rows.popleft()
            with self._in_use:
                self._advance()
        with self._in_use:
            self._drop_follower()
        return None

    def stop(self) -> None:
        """End it, whatever it is waiting for."""
        self._stopped.set()
        follower = self._follower
        if follower is not None:
            follower.wake()
        # A thread that is in it drops the connection itself, as soon as it wakes.
        if self._in_use.acquire(blocking=False):
            self._drop_follower()
            self._in_use.release()

    def _advance(self) -> None:
        try:
            follower = self._opened()
            looked, rows = follower.read(self._after, _PAGE_ROWS, self._topics)
            if not rows and looked == self._after and not self._stopped.is_set():
                follower.wait(_SAFETY_POLL_S)
        except StoreUnavailableError:
            self._wait_for_server()
        except self._backend.errors as error:
            if not self._backend.is_lost_connection(error):
                raise self._backend.translate(error) from error
            self._wait_for_server()
        else:
            self._rows.extend(rows)
            self._after = looked
            self._pause_s = _FIRST_PAUSE_S

    def _opened(self) -> Follower:
        if self._follower is None:
            self._follower = self._backend.follower()
        return self._follower

    def _wait_for_server(self) -> None:
        self._drop_follower()
        self._stopped.wait(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)

    def _drop_follower(self) -> None:
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.close()


class NotificationStream(Iterator[Notification]):
    """What `SessionStore.subscribe` returns: a context manager and its iterator."""

    def __init__(
        self, following: LogFollowing, convert: Callable[[GlobalRow], Notification]
    ) -> None:
        self._following = following
        self._convert = convert

    def __enter__(self) -> Iterator[Notification]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._following.stop()

    def __next__(self) -> Notification:
        row = self._following.next_row()
        if row is None:
            raise StopIteration
        return self._convert(row)
