"""Appends on PostgreSQL in a transaction that a test ends when it likes, and waiting for others to wait."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import psycopg

from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.backend import runs_of
from everfold.store.contract.follower import PATIENCE_S
from tests.postgres import connect

APPEND = (
    "SELECT append_events(%s::text[], %s::bigint[], %s::integer[], %s::text[], %s::bytea[], NULL)"
)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
)


class OpenWriter:
    """A connection with a transaction that is open; `append` joins it."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        connection.execute("BEGIN")

    def append(self, events: Sequence[Recorded]) -> list[int]:
        """Append without committing; return the positions."""
        runs = runs_of(events)
        row = self.connection.execute(
            APPEND,
            (
                [run.stream_id for run in runs],
                [run.first for run in runs],
                [len(run.topics) for run in runs],
                [topic for run in runs for topic in run.topics],
                [state for run in runs for state in run.states],
            ),
        ).fetchone()
        assert row is not None
        positions: list[int] = row[0]
        return positions

    def commit(self) -> None:
        """Wake the followers and commit."""
        self.connection.execute("SELECT wake_followers()")
        self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Give everything up; nobody is told."""
        self.connection.execute("ROLLBACK")


@contextmanager
def open_writer(url: str, events: Sequence[Recorded] = ()) -> Iterator[OpenWriter]:
    """Yield an open transaction that has appended these events; it is rolled back unless it was ended."""
    with connect(url) as connection:
        writer = OpenWriter(connection)
        if events:
            writer.append(events)
        yield writer
        with suppress(psycopg.OperationalError):  # a test may have killed it
            connection.rollback()


class Background:
    """Runs something on a thread; `outcome` gives what it returned or raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._outcome: object = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._work()
        except Exception as error:  # noqa: BLE001 - handed to the test, whatever it is
            self._outcome = error

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def outcome(self) -> object:
        """Return its result or its exception, as soon as it has ended."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it hangs"
        return self._outcome


def appending(store: SessionStore, events: Sequence[Recorded]) -> Background:
    """Append on a thread."""
    return Background(lambda: store.append(events))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return when it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def wait_until_blocked(url: str, name: str, count: int = 1) -> None:
    """Return when this many connections of the application wait for a lock."""
    with connect(url) as observer:
        wait_until(lambda: observer.execute(WAITING, [name]).fetchone() == (count,))
