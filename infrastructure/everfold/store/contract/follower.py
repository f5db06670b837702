"""A reader of the global order on a thread of its own, for tests that wait for what it sees."""

import threading
from collections.abc import Iterator, Sequence
from types import TracebackType

from everfold.session.ports import Notification, SessionStore

PATIENCE_S = 60.0
"""After so long without an answer a test fails instead of hanging; nothing is measured by it."""


class Follower:
    """Collects notifications while a test does other things; leaving it ends the subscription.

    The subscription is closed from another thread than the one that iterates it.
    """

    def __init__(self, store: SessionStore, *, after: int = 0, topics: Sequence[str] = ()) -> None:
        self._subscription = store.subscribe(after=after, topics=topics)
        self._changed = threading.Condition()
        self._seen: list[Notification] = []
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Follower":
        iterator = self._subscription.__enter__()
        self._thread = threading.Thread(target=self._run, args=(iterator,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the subscription and wait for the iteration to end.

        Raises:
            AssertionError: the iteration goes on.
        """
        if self._thread is None:
            return
        self._subscription.__exit__(None, None, None)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the iteration goes on after its subscription was left"
        self._thread = None

    @property
    def seen(self) -> list[Notification]:
        """What arrived so far, in order of arrival."""
        with self._changed:
            return list(self._seen)

    def wait_for(self, count: int) -> list[Notification]:
        """Return what arrived as soon as it is this many.

        Raises:
            AssertionError: the subscription failed, or nothing came for too long.
        """
        with self._changed:
            done = self._changed.wait_for(
                lambda: len(self._seen) >= count or self._failure is not None, PATIENCE_S
            )
            assert self._failure is None, f"the subscription failed: {self._failure!r}"
            assert done, f"{len(self._seen)} notification(s) came, {count} were expected"
            return list(self._seen)

    def _run(self, iterator: Iterator[Notification]) -> None:
        try:
            for notification in iterator:
                with self._changed:
                    self._seen.append(notification)
                    self._changed.notify_all()
        except Exception as error:  # noqa: BLE001 - handed to the waiting test, whatever it is
            with self._changed:
                self._failure = error
                self._changed.notify_all()
