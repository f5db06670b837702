"""Ordering is settled by construction: what commits late is never passed over by a follower."""

import threading
import time

import pytest

from everfold.store.contract.follower import PATIENCE_S, Follower
from everfold.store.contract.rows import row, rows
from everfold.store.urls import open_store
from tests.postgres import connect, with_query
from tests.proxy import Proxy
from tests.raw import sqlite
from tests.store.open_writers import appending, wait_until_blocked

INSERT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, state)"
    " VALUES ('slow', 3, 'user/message', {state})"
)


def test_a_follower_on_postgres_misses_no_event_that_commits_late(postgres_url: str) -> None:
    name = "late-commit"
    with (
        open_store(with_query(postgres_url, application_name=name)) as slow,
        open_store(postgres_url) as fast,
        open_store(postgres_url) as reader,
        connect(postgres_url) as holder,
    ):
        slow.append([row("slow", 1)])
        with Follower(reader) as follower:
            follower.wait_for(1)
            # An uncommitted row at version 3 stops the slow writer half-way: it holds positions.
            with holder.transaction(force_rollback=True):
                holder.execute(INSERT.format(state="'{}'").encode())
                late = appending(slow, rows("slow", 2, 3))
                wait_until_blocked(postgres_url, name)
                fast.append([row("fast", 1)])
                assert fast.version("fast") == 1
                assert len(reader.read_all()) == 1
                assert late.is_running
                assert len(follower.seen) == 1
            late.outcome()
            seen = follower.wait_for(4)
        stored = reader.read_all()

    assert seen == list(stored)
    assert [(n.event.originator_id, n.event.originator_version) for n in seen] == [
        ("slow", 1),
        ("slow", 2),
        ("slow", 3),
        ("fast", 1),
    ]


def test_a_follower_on_sqlite_misses_no_event_that_commits_late(sqlite_url: str) -> None:
    with open_store(sqlite_url) as fast, open_store(sqlite_url) as reader:
        fast.append(rows("slow", 1, 2))
        with Follower(reader) as follower, sqlite(sqlite_url) as holder:
            follower.wait_for(2)
            holder.execute("BEGIN IMMEDIATE")
            holder.execute(INSERT.format(state="X'7B7D'"))
            other = appending(fast, [row("fast", 1)])
            time.sleep(0.3)
            assert other.is_running
            assert len(follower.seen) == 2
            holder.execute("COMMIT")
            other.outcome()
            seen = follower.wait_for(4)

    assert [(n.event.originator_id, n.event.originator_version) for n in seen] == [
        ("slow", 1),
        ("slow", 2),
        ("slow", 3),
        ("fast", 1),
    ]


def test_an_event_between_the_first_read_and_a_late_listen_is_followed(
    postgres_url: str, proxy: Proxy
) -> None:
    with open_store(postgres_url) as writer, open_store(proxy.url) as reader:
        writer.append([row("a", 1)])
        proxy.hold(b"LISTEN")
        follower = Follower(reader)
        start = threading.Thread(target=follower.__enter__, daemon=True)
        start.start()
        assert proxy.holds.wait(PATIENCE_S), "the subscription never listened"
        writer.append([row("a", 2)])

        proxy.release()
        start.join(PATIENCE_S)
        seen = follower.wait_for(2)
        follower.close()

    assert [n.event.originator_version for n in seen] == [1, 2]


@pytest.mark.parametrize("cuts", [1, 3])
def test_a_subscription_outlives_its_connection(postgres_url: str, proxy: Proxy, cuts: int) -> None:
    with open_store(postgres_url) as writer, open_store(proxy.url) as reader:
        with Follower(reader) as follower:
            for cut in range(cuts):
                writer.append([row(f"before-{cut}", 1)])
                follower.wait_for(2 * cut + 1)
                proxy.cut_all()
                writer.append([row(f"after-{cut}", 1)])
            seen = follower.wait_for(2 * cuts)

        assert seen == list(writer.read_all())
