"""How followers on PostgreSQL are woken: after the commit, in the same round trip, and at nobody's cost."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from everfold.session.ports import SessionStore
from everfold.store.contract.follower import PATIENCE_S, Follower
from everfold.store.contract.rows import row, rows
from everfold.store.postgres_backend import PostgresBackend
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.urls import open_store
from tests.postgres import connect, own_server, with_query
from tests.store.open_writers import (
    Background,
    appending,
    open_writer,
    wait_until,
    wait_until_blocked,
)

Work = Callable[[SessionStore], object]

WRITES: dict[str, Work] = {
    "one event": lambda store: store.append([row("a", 2)]),
    "one event under a key": lambda store: store.append([row("a", 2)], key="k"),
    "a new stream": lambda store: store.append([row("b", 1)]),
    "a batch": lambda store: store.append(rows("a", 2, 9)),
    "several streams": lambda store: store.append([row("a", 2), row("b", 1)]),
    "a copy": lambda store: store.copy_stream("a", 1, row("c", 1), []),
}
STANDBY_OF_NOBODY = """
fsync = off
synchronous_standby_names = 'nobody'
synchronous_commit = local
"""

every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


@pytest.fixture
def store(postgres_url: str) -> Iterator[DatabaseSessionStore]:
    """A store with the stream `a` of one row."""
    with open_store(postgres_url) as store:
        store.append([row("a", 1)])
        yield store


@pytest.fixture
def listener(store: DatabaseSessionStore, postgres_url: str) -> Iterator[psycopg.Connection]:
    """A connection that listens as any program may."""
    assert isinstance(store.backend, PostgresBackend)
    with connect(postgres_url) as connection:
        connection.execute(f"LISTEN {store.backend.datastore.settings.channel}".encode())
        yield connection


def heard(listener: psycopg.Connection) -> int:
    """Wait for a notification; return how many are there."""
    return len(list(listener.notifies(timeout=PATIENCE_S, stop_after=1)))


@every_write
def test_every_commit_tells_those_who_listen(
    store: DatabaseSessionStore, listener: psycopg.Connection, write: Work
) -> None:
    write(store)

    assert heard(listener) == 1


def test_a_writer_that_commits_late_tells_again(
    store: DatabaseSessionStore, listener: psycopg.Connection, postgres_url: str
) -> None:
    url = with_query(postgres_url, application_name="late-teller")
    with open_store(url) as slow, open_writer(postgres_url) as blocker:
        # Half of a batch is stored, the other half waits for a row that is never committed.
        blocker.connection.execute(
            "INSERT INTO stored_events (originator_id, originator_version, topic, state)"
            " VALUES ('a', 3, 't/x', '{}')"
        )
        late = appending(slow, rows("a", 2, 3))
        wait_until_blocked(postgres_url, "late-teller")
        store.append([row("b", 1)])
        assert heard(listener) == 1
        assert len(store.read_all()) == 1
        blocker.roll_back()
        late.outcome()

    assert heard(listener) == 1
    assert len(store.read_all()) == 4


@every_write
def test_a_write_takes_one_round_trip(
    store: DatabaseSessionStore, write: Work, tmp_path: Path
) -> None:
    assert isinstance(store.backend, PostgresBackend)
    warm_up(store)
    trace = tmp_path / "trace"
    with trace.open("wb") as file:
        with store.backend.datastore.using() as connection:
            connection.pgconn.trace(file.fileno())
        write(store)
        with store.backend.datastore.using() as connection:
            connection.pgconn.untrace()

    assert trace.read_text().count("ReadyForQuery") == 1


def warm_up(store: SessionStore) -> None:
    """Let the connection prepare its statements."""
    store.append([row("warm", 1)])
    store.append([row("warm", 2), row("warmer", 1)])
    store.copy_stream("warm", 2, row("warmest", 1), [])


@every_write
def test_a_write_whose_followers_cannot_be_woken_is_stored(
    store: DatabaseSessionStore, postgres_url: str, write: Work
) -> None:
    expected = len(store.read_all())
    with connect(postgres_url) as admin:
        admin.execute(
            "CREATE OR REPLACE FUNCTION wake_followers() RETURNS void LANGUAGE plpgsql"
            " AS 'BEGIN RAISE EXCEPTION ''no bell''; END'"
        )

    answer = write(store)

    positions = [n.position for n in store.read_all()][expected:]
    assert positions
    assert answer in (positions, len(positions))


def test_an_append_counts_although_another_notification_keeps_its_own_from_going_out() -> None:
    with own_server(STANDBY_OF_NOBODY) as server:
        url = with_query(server.get_uri(), schema="public")
        hasty = with_query(url, lock_timeout_s="0.2")
        with open_store(hasty) as store, connect(url) as admin, connect(url) as ringer:
            (first,) = store.append([row("a", 1)])
            admin.execute("CREATE TABLE notes (text text)")
            # It notifies and waits for a standby that is not there; no other notification gets by.
            ringer.execute("SET synchronous_commit = on")
            ringing = Background(lambda: ring(ringer))
            ringer_pid = ringer.info.backend_pid
            wait_until(lambda: is_waiting_for_standby(admin, ringer_pid))

            positions = [*store.append([row("a", 2)]), *store.append(rows("a", 3, 4))]

            assert ringing.is_running
            with Follower(store) as follower:
                seen = follower.wait_for(4)
            admin.execute("SELECT pg_cancel_backend(%s)", [ringer_pid])
            ringing.outcome()

    assert [n.position for n in seen] == [first, *positions]
    assert [n.event.originator_version for n in seen] == [1, 2, 3, 4]


def ring(connection: psycopg.Connection) -> None:
    """Commit a transaction that writes and notifies."""
    with connection.transaction():
        connection.execute("INSERT INTO notes VALUES ('hello')")
        connection.execute("NOTIFY somebody")


def is_waiting_for_standby(admin: psycopg.Connection, pid: int) -> bool:
    """Return whether a connection's commit waits for a standby."""
    found = admin.execute("SELECT wait_event FROM pg_stat_activity WHERE pid = %s", [pid])
    return found.fetchone() == ("SyncRep",)
