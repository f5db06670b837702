"""Reports from the field, group B: events lost, doubled or reordered under concurrency."""

import fcntl
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from everfold.session.errors import ConflictError, SessionExistsError
from everfold.session.ports import SessionStore
from everfold.store.contract.follower import Follower
from everfold.store.contract.rows import row, rows, versions
from everfold.store.contract.sharing import append_until_stored
from everfold.store.urls import open_store
from tests.processes import CONTEXT, Worker, run_at_once
from tests.proxy import Proxy
from tests.raw import path_of, stored_rows

WRITERS = 20


def test_b3_events_of_one_instant_come_back_in_order_on_every_path(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 200))
        for version in range(201, 401):
            store.append([row("a", version)])
        in_order = list(range(1, 401))

        with Follower(store) as follower:
            followed = versions([n.event for n in follower.wait_for(400)])
        store.copy_stream("a", 400, row("c", 1), [])

        assert {event.time for event in store.read("a")} == {1_700_000_000_000}
        assert followed == in_order
        assert versions(list(store.read("a"))) == in_order
        assert versions(list(store.read("a", descending=True))) == in_order[::-1]
        assert versions(store.read_versions("a", in_order[::-1])) == in_order
        assert versions(list(store.read("c"))) == in_order


def write_first(url: str, own_stream: str) -> None:
    """Open the store, start a stream, and append to one that everybody starts."""
    with open_store(url) as store:
        store.append([row(own_stream, 1)])
        try:
            store.append([row("shared", 1, text=own_stream)])
        except SessionExistsError:
            append_until_stored(store, "shared", own_stream)


def test_b4_twenty_processes_write_first_on_an_empty_database(store_url: str) -> None:
    streams = [f"own-{n:02}" for n in range(WRITERS)]

    run_at_once(write_first, [(store_url, stream_id) for stream_id in streams])

    with open_store(store_url) as store:
        assert [(s.stream_id, s.version) for s in store.streams()] == [
            *((stream_id, 1) for stream_id in streams),
            ("shared", WRITERS),
        ]
        assert {e.data["text"] for e in store.read("shared")} == set(streams)


def append_anywhere(url: str, text: str) -> None:
    """Append one event wherever there is room."""
    with open_store(url) as store:
        append_until_stored(store, "a", text)


def test_b6_twenty_appends_without_expectation_are_twenty_events(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append([row("a", 1)])

    run_at_once(append_anywhere, [(store_url, str(n)) for n in range(WRITERS)])

    with open_store(store_url) as store:
        events = list(store.read("a", after=1))
    assert [event.seq for event in events] == list(range(WRITERS))
    assert {event.data["text"] for event in events} == {str(n) for n in range(WRITERS)}


def append_as_expected(url: str, text: str) -> bool:
    """Append at version 2; return whether it was stored."""
    with open_store(url) as store:
        try:
            store.append([row("a", 2, text=text)])
        except ConflictError:
            return False
        return True


def test_b6_of_twenty_equal_expectations_one_succeeds(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append([row("a", 1)])

    outcomes = run_at_once(append_as_expected, [(store_url, str(n)) for n in range(WRITERS)])

    assert sorted(outcomes) == [False] * (WRITERS - 1) + [True]
    assert [stored[2] for stored in stored_rows(store_url)] == [1, 2]


def hold_and_flush(url: str, pipe: object) -> str:
    """Read the stream, wait until told, then store a close marker at the version read then."""
    assert hasattr(pipe, "send")
    assert hasattr(pipe, "recv")
    with open_store(url) as store:
        version = store.version("a")
        pipe.send(("read", version))
        pipe.recv()
        try:
            store.append([row("a", version + 1, text="closed by the first process")])
        except ConflictError as conflict:
            return f"conflict after {conflict.expected_version}"
        return "stored"


def test_b7_a_marker_flushed_after_another_process_resumed_is_refused(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 580))
        first = Worker(hold_and_flush, store_url, reports=True)
        assert first.pipe.recv() == ("read", 580)
        resumed = row("a", 581, text="resumed by the second process")
        store.append([resumed])

        first.pipe.send("flush")

        assert first.result() == "conflict after 580"
        assert versions(list(store.read("a"))) == list(range(1, 582))
        assert list(store.read("a", after=580)) == [resumed]


def test_b9_a_replacement_decided_before_anothers_commit_is_refused(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 5))
        append_elsewhere(store_url)

        with pytest.raises(ConflictError) as caught:
            store.append([row("a", 6, text="a replacement of 1 to 5")])
        store.append([row("a", 7, text="a replacement of 1 to 5, decided again")])

        assert [event.data["text"] for event in caught.value.appended] == ["hello-42"]
        assert [event.data["text"] for event in store.read("a", after=5)] == [
            "hello-42",
            "a replacement of 1 to 5, decided again",
        ]


def append_elsewhere(url: str) -> None:
    """Append "hello-42" from another process."""
    Worker(append_anywhere, url, "hello-42").result()


class TestB10:
    """A client times out and sends its message again."""

    def test_b10_three_posts_under_one_key_are_one_event(
        self, postgres_url: str, proxy: Proxy
    ) -> None:
        mark = "the first response is dropped"
        with open_store(proxy.url) as store:
            store.append([row("a", 1)])
            proxy.lose_reply_to(mark.encode())

            answers = [post(store, "a", mark, key="k1") for _ in range(3)]

            assert proxy.cuts == 1
            assert answers == [[2]] * 3
            assert [e.data["text"] for e in store.read("a", after=1)] == [mark]

    def test_b10_the_same_key_with_other_text_is_refused(self, store_url: str) -> None:
        with open_store(store_url) as store:
            store.append([row("a", 1)])
            post(store, "a", "one thing", key="k1")

            with pytest.raises(ConflictError):
                store.append([row("a", 3, text="another thing")], key="k1")

            assert store.version("a") == 2

    def test_b10_a_repeated_batch_that_made_its_stream_is_answered_as_done(
        self, store_url: str
    ) -> None:
        batch = rows("new", 1, 2)
        with open_store(store_url) as store:
            first = store.append(batch)
            store.append([row("new", 3)])

            again = store.append(batch)

            assert list(again) == list(first)
            assert store.version("new") == 3


def post(store: SessionStore, stream_id: str, text: str, *, key: str) -> list[int]:
    """Append one event under a key as a server does; return the versions that hold it."""
    done = store.find_append(stream_id, key)
    if not done:
        store.append([row(stream_id, store.version(stream_id) + 1, text=text)], key=key)
        done = store.find_append(stream_id, key)
    return versions(done)


PROCESSES = 16
APPENDS_EACH = 100


def append_a_hundred(url: str, stream_id: str) -> None:
    """Append a hundred events one by one."""
    with open_store(url) as store:
        for version in range(1, APPENDS_EACH + 1):
            store.append([row(stream_id, version, text="t" * 600)])


def list_until_full(url: str) -> int:
    """List the streams again and again until every writer is done; return how often."""
    times = 0
    with open_store(url) as store:
        while sum(summary.version for summary in store.streams()) < PROCESSES * APPENDS_EACH:
            times += 1
    return times


def back_up(url: str, target: str) -> None:
    """Back the file up three times through SQLite's own interface."""
    for number in range(3):
        with (
            closing(sqlite3.connect(path_of(url), timeout=30)) as source,
            closing(sqlite3.connect(f"{target}-{number}")) as copy,
        ):
            source.backup(copy, pages=64)


def test_b11_sixteen_processes_write_one_file_while_it_is_listed_and_backed_up(
    sqlite_url: str, tmp_path: Path
) -> None:
    with open_store(sqlite_url):
        pass
    barrier = CONTEXT.Barrier(PROCESSES + 2)
    workers: list[Worker[object]] = [
        Worker(append_a_hundred, sqlite_url, f"w{n}", barrier=barrier) for n in range(PROCESSES)
    ]
    workers.append(Worker(list_until_full, sqlite_url, barrier=barrier))
    workers.append(Worker(back_up, sqlite_url, str(tmp_path / "copy"), barrier=barrier))

    for worker in workers:
        worker.result()

    path = path_of(sqlite_url)
    wal = path.with_name(path.name + "-wal")
    assert not wal.exists() or wal.stat().st_size < 64_000_000
    for each in (path, tmp_path / "copy-2"):
        with closing(sqlite3.connect(each)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with open_store(sqlite_url) as store:
        assert [s.version for s in store.streams()] == [APPENDS_EACH] * PROCESSES


def try_to_lock(path: str) -> bool:
    """Return whether no other process holds SQLite's shared lock on the file."""
    with open(path, "rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x4000_0002)
        except OSError:
            return False
        return True


def test_b11_opening_and_closing_the_file_again_drops_no_lock_of_this_process(
    sqlite_url: str,
) -> None:
    with open_store(sqlite_url) as store:
        store.append(rows("a", 1, 3))
        assert not Worker(try_to_lock, str(path_of(sqlite_url))).result()

        with open_store(sqlite_url) as again:
            again.append([row("a", 4)])
        with open_store(sqlite_url, read_only=True) as reader:
            assert reader.version("a") == 4

        assert not Worker(try_to_lock, str(path_of(sqlite_url))).result()
        store.append([row("a", 5)])
