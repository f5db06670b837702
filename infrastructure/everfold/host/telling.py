"""Tells observers of one session's batches in the order in which they were stored."""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from everfold.session.events import Recorded

Batch = Sequence[Recorded]


class Telling:
    """Batches that wait to be told, and whether somebody is at it.

    One thread tells at a time. Who comes meanwhile, another thread, a signal handler or an observer
    that appends, leaves its batch to that one: nobody waits, so nobody can wait for each other.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._waiting: deque[Batch] = deque()

    def add(self, batch: Batch) -> None:
        """Put a stored batch in line; call it in the order of the commits."""
        self._waiting.append(batch)

    def tell(self, tell_one: Callable[[Batch], None]) -> None:
        """Tell what waits, unless somebody is at it already."""
        # It looks again once it gave the turn back: what came before that was left to it.
        while self._waiting and self._turn.acquire(blocking=False):
            try:
                while self._waiting:
                    tell_one(self._waiting.popleft())
            finally:
                self._turn.release()
