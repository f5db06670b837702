"""Followers beside writers that race, give up and are killed: each committed event once, in order."""

import random
import threading
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from everfold.session.errors import ConflictError, SessionExistsError, StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.contract.follower import Follower
from everfold.store.contract.rows import row, rows
from everfold.store.urls import open_store
from tests.postgres import connect, with_query
from tests.processes import Worker
from tests.raw import stored_rows
from tests.store.open_writers import OpenWriter

NAME = "to-be-killed"
WRITERS = 4
ROUNDS = 60
SHARED = ("shared-0", "shared-1", "shared-2")
KILL_PAUSE_S = 0.05


def opened(url: str) -> SessionStore:
    """Open the store, however often that is cut off."""
    while True:
        try:
            return open_store(url)
        except StoreUnavailableError:
            continue


def append_until_known(store: SessionStore, events: Sequence[Recorded]) -> None:
    """Append; the same events again while it is not known whether they are stored."""
    while True:
        try:
            store.append(events)
        except StoreUnavailableError:
            continue
        return


def append_to_all(store: SessionStore, streams: Sequence[str]) -> None:
    """Append an event to each of the streams that others write, too, if nobody is faster."""
    with suppress(ConflictError, SessionExistsError, StoreUnavailableError):
        store.append([row(each, store.version(each) + 1) for each in streams])


def write(url: str, number: int) -> None:
    """Append to a stream of one's own, and to several that others write, too."""
    choice = random.Random(number)
    store = opened(url)
    version = 0
    for _ in range(ROUNDS):
        size = choice.choice((1, 1, 1, 20))
        append_until_known(store, rows(f"own-{number}", version + 1, version + size))
        version += size
        append_to_all(store, choice.sample(SHARED, choice.randint(1, 3)))


def hold_open(url: str, number: int) -> None:
    """Append in transactions that stay open for a while; every third is rolled back."""
    choice = random.Random(number)
    server = None
    for turn in range(ROUNDS):
        try:
            server = connect(url) if server is None else server
            writer = OpenWriter(server)
            writer.append([row(f"held-{number}-{turn}", 1)])
            threading.Event().wait(0.03 * choice.random())
            writer.append(rows(f"held-{number}-{turn}", 2, 3))
            if turn % 3:
                writer.commit()
            else:
                writer.roll_back()
        except psycopg.OperationalError:
            server = None


def kill_now_and_then(url: str, is_over: threading.Event) -> None:
    """End one connection after the other."""
    with connect(url) as admin:
        while not is_over.wait(KILL_PAUSE_S):
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = %s ORDER BY random() LIMIT 1",
                [NAME],
            )


def test_followers_see_each_event_of_racing_and_killed_writers_once_and_in_order(
    postgres_url: str,
) -> None:
    url = with_query(postgres_url, application_name=NAME)
    is_over = threading.Event()
    with open_store(postgres_url) as store, open_store(url) as cut_off:
        killing = threading.Thread(target=kill_now_and_then, args=(postgres_url, is_over))
        with Follower(store) as follower, Follower(cut_off) as follower_that_is_killed:
            killing.start()
            try:
                workers = [Worker(write, url, number) for number in range(WRITERS)]
                workers += [Worker(hold_open, url, number) for number in range(2)]
                for worker in workers:
                    worker.result()
            finally:
                is_over.set()
                killing.join()
            stored = stored_rows(postgres_url)
            seen = follower.wait_for(len(stored))
            seen_between_cuts = follower_that_is_killed.wait_for(len(stored))

    places = [(n.position, n.event.originator_id, n.event.originator_version) for n in seen]
    assert places == [each[:3] for each in stored]
    assert seen_between_cuts == seen
    assert {f"own-{number}" for number in range(WRITERS)} < {each[1] for each in stored}
    for stream_id in {each[1] for each in stored}:
        versions = [each[2] for each in stored if each[1] == stream_id]
        assert versions == list(range(1, len(versions) + 1))
