"""Upkeep of the tables and writers do not wait for each other."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from everfold.session.ports import SessionStore
from everfold.store.contract.follower import PATIENCE_S
from everfold.store.contract.rows import row, rows, versions
from everfold.store.urls import open_store
from tests.postgres import connect
from tests.raw import sqlite

SHORT_WAIT = b"SET lock_timeout = '5s'"


@pytest.fixture
def store(postgres_url: str) -> Iterator[SessionStore]:
    """A store on PostgreSQL with one stream."""
    with open_store(postgres_url) as store:
        store.append(rows("a", 1, 50))
        yield store


@pytest.mark.parametrize("upkeep", ["ANALYZE stored_events", "VACUUM stored_events"])
def test_upkeep_does_not_wait_for_an_append(
    store: SessionStore, postgres_url: str, upkeep: str
) -> None:
    with connect(postgres_url) as holder, connect(postgres_url) as keeper:
        with holder.transaction(force_rollback=True):
            holder.execute(
                b"INSERT INTO stored_events (originator_id, originator_version, topic, state)"
                b" VALUES ('a', 52, 't', '{}')"
            )
            appending = threading.Thread(target=store.append, args=(rows("a", 51, 52),))
            appending.start()
            wait_until_blocked(keeper)
            keeper.execute(SHORT_WAIT)

            keeper.execute(upkeep.encode())

            assert appending.is_alive()
        appending.join(PATIENCE_S)

    assert store.version("a") == 52


def wait_until_blocked(connection: psycopg.Connection) -> None:
    """Return when an append is stopped by the row that a test holds."""
    while connection.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event = 'transactionid'"
    ).fetchone() == (0,):
        pass


def test_autovacuum_is_not_skipped_while_writers_write(
    store: SessionStore, postgres_url: str
) -> None:
    notices: list[str] = []
    is_over = threading.Event()

    def write(stream_id: str) -> None:
        version = 0
        while not is_over.is_set():
            version += 1
            store.append([row(stream_id, version)])

    writers = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(3)]
    with connect(postgres_url) as keeper:
        keeper.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        for writer in writers:
            writer.start()
        try:
            for _ in range(20):
                # What autovacuum does: it gives up at once where a lock is taken.
                keeper.execute(b"VACUUM (SKIP_LOCKED, ANALYZE) stored_events")
        finally:
            is_over.set()
            for writer in writers:
                writer.join(PATIENCE_S)

    assert notices == []
    for writer_id in ("w0", "w1", "w2"):
        stored = versions(list(store.read(writer_id)))
        assert stored == list(range(1, len(stored) + 1))


def test_an_append_does_not_wait_for_upkeep(store: SessionStore, postgres_url: str) -> None:
    with connect(postgres_url) as keeper, keeper.transaction():
        # The lock that VACUUM, ANALYZE and CREATE INDEX CONCURRENTLY hold from start to end.
        keeper.execute(b"LOCK TABLE stored_events IN SHARE UPDATE EXCLUSIVE MODE")
        appending = threading.Thread(target=store.append, args=([row("a", 51)],))
        appending.start()
        appending.join(PATIENCE_S)

        assert not appending.is_alive()

    assert store.version("a") == 51


def test_the_log_may_be_vacuumed_by_the_server_at_its_usual_thresholds(
    store: SessionStore, postgres_url: str
) -> None:
    with connect(postgres_url) as admin:
        options = admin.execute(
            "SELECT coalesce(reloptions::text, '') FROM pg_class WHERE oid = 'stored_events'::regclass"
        ).fetchone()

    assert options is not None
    assert "autovacuum_enabled=false" not in options[0]
    assert "threshold=100000000" not in options[0]


def test_an_sqlite_store_is_usable_after_its_file_was_vacuumed(sqlite_url: str) -> None:
    with open_store(sqlite_url) as store:
        positions = store.append([*rows("a", 1, 5), *rows("b", 1, 5)])
        store.delete_stream("a")

        with sqlite(sqlite_url) as keeper:
            keeper.execute("VACUUM")

        assert [n.position for n in store.read_all()] == list(positions[5:])
        (position,) = store.append([row("b", 6)])
        assert position > positions[-1]
