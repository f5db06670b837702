"""Bounded waits with a clear end, fair turns, and stores that are used where they may not be."""

import os
import threading
import time
from multiprocessing.synchronize import Barrier

import pytest

from everfold.session.errors import StoreBusyError, StoreUnavailableError
from everfold.session.ports import SessionStore
from everfold.store.contract.follower import PATIENCE_S, Follower
from everfold.store.contract.rows import row, rows, versions
from everfold.store.urls import open_store
from tests.processes import CONTEXT, Worker
from tests.raw import sqlite, stored_rows

WRITERS = 6
ENOUGH = 300


def test_an_sqlite_file_that_others_hold_is_given_up_after_the_wait(sqlite_url: str) -> None:
    with open_store(f"{sqlite_url}?lock_timeout_s=0.2") as store, sqlite(sqlite_url) as holder:
        store.append([row("a", 1)])
        holder.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreBusyError):
            store.append([row("a", 2)])

        holder.execute("ROLLBACK")
        store.append([row("a", 2)])
        assert store.version("a") == 2


def test_readers_of_an_sqlite_file_do_not_wait_for_a_writer(sqlite_url: str) -> None:
    with open_store(f"{sqlite_url}?lock_timeout_s=0.2") as store, sqlite(sqlite_url) as holder:
        store.append(rows("a", 1, 3))
        holder.execute("BEGIN IMMEDIATE")

        assert versions(list(store.read("a"))) == [1, 2, 3]
        assert [summary.version for summary in store.streams()] == [3]


def append_until(url: str, stream_id: str, end: str, start: Barrier) -> int:
    """Append event after event until some writer has stored enough; return how many."""
    done = 0
    with open_store(url) as store, open(end, "ab", buffering=0) as finish:
        store.version(stream_id)
        start.wait(PATIENCE_S)
        while os.fstat(finish.fileno()).st_size == 0:
            done += 1
            store.append([row(stream_id, done)])
            if done == ENOUGH:
                finish.write(b".")
    return done


def test_no_writer_is_starved_by_the_others(
    store_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    finish = str(tmp_path_factory.mktemp("race") / "finish")
    with open_store(store_url):
        pass
    start = CONTEXT.Barrier(WRITERS)
    workers = [Worker(append_until, store_url, f"w{n}", finish, start) for n in range(WRITERS)]

    stored = [worker.result() for worker in workers]

    assert max(stored) == ENOUGH
    assert min(stored) >= ENOUGH // 10
    assert len(stored_rows(store_url)) == sum(stored)


def test_a_closed_store_says_that_it_is_closed(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append([row("a", 1)])

    with pytest.raises(StoreUnavailableError, match="closed"):
        store.append([row("a", 2)])
    with pytest.raises(StoreUnavailableError, match="closed"):
        store.version("a")


def append_on_both_sides_of_a_fork(url: str) -> tuple[str, list[int]]:
    """Fork with an open store; return what the child met, and what the parent stored after it."""
    with open_store(url) as store:
        store.append([row("a", 1)])
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, outcome_of_append(store).encode())
            os._exit(0)
        os.waitpid(child, 0)
        store.append([row("a", 2, text="parent")])
        return os.read(reading, 1_000).decode(), versions(list(store.read("a")))


def outcome_of_append(store: SessionStore) -> str:
    """Append; return the code of the refusal."""
    try:
        store.append([row("a", 2, text="child")])
    except StoreUnavailableError as error:
        return error.code
    return "stored"


def test_a_store_that_was_opened_before_a_fork_is_refused_in_the_child(store_url: str) -> None:
    outcome = Worker(append_on_both_sides_of_a_fork, store_url).result()

    assert outcome == (StoreUnavailableError.code, [1, 2])


def test_a_subscription_ends_when_its_store_is_closed(store_url: str) -> None:
    store = open_store(store_url)
    store.append([row("a", 1)])
    follower = Follower(store)
    follower.__enter__()
    follower.wait_for(1)

    closing = threading.Thread(target=store.close)
    closing.start()
    closing.join(PATIENCE_S)

    assert not closing.is_alive()
    follower.close()


def test_a_writer_waits_for_one_that_is_slow(sqlite_url: str) -> None:
    with open_store(sqlite_url) as store, sqlite(sqlite_url) as holder:
        store.append([row("a", 1)])
        holder.execute("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=store.append, args=([row("a", 2)],))
        waiting.start()
        time.sleep(0.3)
        assert waiting.is_alive()

        holder.execute("COMMIT")
        waiting.join(PATIENCE_S)

        assert store.version("a") == 2
