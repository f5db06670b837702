"""Stores that fail at a chosen append; all else is passed on to the real store."""

from collections.abc import Callable, Sequence
from typing import cast

from everfold.host.sessions import Sessions
from everfold.session.errors import StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore


class CrashError(BaseException):
    """The process is gone."""


class FaultyStore:
    """Does something else at its n-th append.

    Attributes:
        instead: is given the real append, and may call it.
    """

    def __init__(
        self, store: SessionStore, at: int, instead: Callable[[Callable[[], Sequence[int]]], None]
    ) -> None:
        self._store, self._left, self._instead = store, at, instead

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def append(self, events: Sequence[Recorded], *, key: str | None = None) -> Sequence[int]:
        """Append, or fail."""
        self._left -= 1
        if self._left == 0:
            self._instead(lambda: self._store.append(events, key=key))
        return self._store.append(events, key=key)


def faulty(
    sessions: Sessions, at: int, instead: Callable[[Callable[[], Sequence[int]]], None]
) -> Sessions:
    """Return a host on a store with a fault."""
    store = cast(SessionStore, FaultyStore(sessions.store, at, instead))
    return Sessions(store, sessions.composition, snapshot_every=0)


def crashing(sessions: Sessions, at: int, *, is_stored: bool) -> Sessions:
    """Return a host whose process dies at its n-th append: before it is stored, or right after."""

    def die(append: Callable[[], Sequence[int]]) -> None:
        if is_stored:
            append()
        raise CrashError

    return faulty(sessions, at, die)


def failing(sessions: Sessions, at: int) -> Sessions:
    """Return a host whose store cannot be reached for its n-th append."""

    def fail(_append: Callable[[], Sequence[int]]) -> None:
        raise StoreUnavailableError("the server is away")

    return faulty(sessions, at, fail)
