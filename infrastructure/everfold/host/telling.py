"""Tells observers of one session's batches in the order in which they were stored."""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from everfold.session.events import Recorded

Batch = Sequence[Recorded]


class Telling:
    """Batches that wait to be told, and whether somebody is at it.

    One thread tells at a time. Who comes meanwhile, another thread or an observer that appends,
    leaves its batch to that one: nobody waits, so nobody can wait for each other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Batch] = deque()
        self._is_telling = False

    def add(self, batch: Batch) -> None:
        """Put a stored batch in line; call it in the order of the commits."""
        self._waiting.append(batch)

    def tell(self, tell_one: Callable[[Batch], None]) -> None:
        """Tell what waits, unless somebody is at it already."""
        while (batch := self._next()) is not None:
            try:
                tell_one(batch)
            finally:
                self._is_telling = False

    def _next(self) -> Batch | None:
        with self._lock:
            if self._is_telling or not self._waiting:
                return None
            self._is_telling = True
            return self._waiting.popleft()
