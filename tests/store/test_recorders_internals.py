"""Parts of the stores that the contract does not reach: the pool, versions, damaged topics."""

import os
import threading
from collections.abc import Iterator, Sequence

import pytest

from everfold.session.errors import CorruptStreamError, StoreBusyError, StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.contract.follower import PATIENCE_S
from everfold.store.contract.rows import row, rows, versions
from everfold.store.pool import Pool
from everfold.store.sqlite_files import has_wal_reset_bug
from everfold.store.urls import open_store
from tests.postgres import connect, with_query
from tests.raw import sqlite, stored_rows


@pytest.fixture
def opened() -> list[int]:
    """The numbers of the connections that were opened."""
    return []


@pytest.fixture
def pool(opened: list[int]) -> Iterator[Pool[int]]:
    """A pool of two numbered connections."""

    def open_next() -> int:
        opened.append(len(opened))
        return opened[-1]

    pool = Pool(open_next, opened.remove, is_fresh=lambda _: True, size=2, timeout_s=0.05)
    yield pool
    pool.close()


def test_a_connection_that_came_back_is_used_again(pool: Pool[int], opened: list[int]) -> None:
    pool.give(pool.take())

    assert pool.take() == 0
    assert opened == [0]


def test_an_exhausted_pool_says_which_option_makes_it_larger(pool: Pool[int]) -> None:
    pool.take()
    pool.take()

    with pytest.raises(StoreBusyError, match="pool_size"):
        pool.take()


def test_a_broken_connection_makes_room_for_a_new_one(pool: Pool[int], opened: list[int]) -> None:
    first, second = pool.take(), pool.take()
    pool.give(second, is_usable=False)

    third = pool.take()

    assert first != third
    assert len(opened) == 2


def test_a_closed_pool_gives_nothing_and_keeps_nothing(pool: Pool[int], opened: list[int]) -> None:
    lent = pool.take()
    pool.give(pool.take())
    pool.close()
    pool.give(lent)

    assert opened == []
    with pytest.raises(StoreUnavailableError, match="closed"):
        pool.take()


def append_until_stored(store: SessionStore, event: Recorded) -> Sequence[int]:
    """Append one event; when there was no connection to be had, once more."""
    while True:
        try:
            return store.append([event])
        except StoreUnavailableError:
            continue


def test_twenty_threads_on_three_connections_that_are_killed_store_each_event_once(
    postgres_url: str,
) -> None:
    url = with_query(postgres_url, pool_size="3", application_name="killed-often")
    done: list[int] = []

    def write(stream_id: str) -> None:
        for version in range(1, 21):
            done.extend(append_until_stored(store, row(stream_id, version)))

    with open_store(url) as store, connect(postgres_url) as admin:
        writers = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(20)]
        for writer in writers:
            writer.start()
        for writer in writers:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'killed-often'"
            )
            writer.join(PATIENCE_S)

    assert sorted(done) == [stored[0] for stored in stored_rows(postgres_url)]
    assert len(done) == 400


def test_a_store_is_refused_in_a_process_that_was_forked_after_it(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append([row("a", 1)])
        child = os.fork()
        if child == 0:
            try:
                store.version("a")
            except StoreUnavailableError:
                os._exit(42)
            os._exit(1)
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 42
        assert store.version("a") == 1


def test_closing_a_store_ends_its_subscriptions(store_url: str) -> None:
    store = open_store(store_url)
    seen: list[int] = []

    def follow() -> None:
        with store.subscribe() as notifications:
            seen.extend(notification.position for notification in notifications)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    store.append([row("a", 1)])

    store.close()
    follower.join(PATIENCE_S)

    assert not follower.is_alive()


def test_a_topic_that_is_not_text_is_named_by_its_seq(sqlite_url: str) -> None:
    with open_store(sqlite_url) as store:
        store.append(rows("a", 1, 4))
        with sqlite(sqlite_url) as keeper:
            keeper.execute(
                "UPDATE stored_events SET topic = CAST(x'75ff' AS TEXT) WHERE originator_version = 3"
            )
        before: list[Recorded] = []

        with pytest.raises(CorruptStreamError) as caught:
            before.extend(store.read("a"))

        assert caught.value.seq == 1
        assert versions(before) == [1, 2]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((3, 6, 23), False),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
    ],
)
def test_the_versions_with_the_wal_reset_bug_are_known(
    version: tuple[int, int, int], expected: bool
) -> None:
    assert has_wal_reset_bug(version) is expected
