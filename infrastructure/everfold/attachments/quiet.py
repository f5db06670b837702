"""Pillow's warnings kept from whoever admits a picture, and no other warning of the program.

The rule to keep: filters of warnings belong to the whole process, so that changing them for a while
would silence other threads too. One filter stays, and matches only in threads that are inside `quiet`.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast


class _InQuietThreads(threading.local):
    """What a filter has in place of a pattern; it matches by the thread, and not by the text."""

    depth = 0

    def match(self, _text: str) -> bool:
        return self.depth > 0


_THREADS = _InQuietThreads()
_FILTER = ("ignore", _THREADS, Warning, None, 0)
_LOCK = threading.Lock()


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning of this thread be shown, recorded or raised until the block is left."""
    _put_first()
    _THREADS.depth += 1
    try:
        yield
    finally:
        _THREADS.depth -= 1


def _put_first() -> None:
    """Put the filter before those that others set since; it is never absent meanwhile."""
    with _LOCK:
        filters = cast("list[Any]", warnings.filters)
        if filters and filters[0] is _FILTER:
            return
        filters.insert(0, _FILTER)
        for place in range(len(filters) - 1, 0, -1):
            if filters[place] is _FILTER:
                del filters[place]
