"""Reports from the field, group G: storage that grows and reads that slow down.

What is counted is rows, pages and bytes, never seconds.
"""

import random
import time
from pathlib import Path

import psycopg
import pytest

from everfold.session.ports import SessionStore
from everfold.store.contract.follower import Follower
from everfold.store.contract.rows import row, rows, versions
from everfold.store.contract.sharing import append_until_stored
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.sqlite_backend import SqliteBackend
from everfold.store.urls import open_store
from tests.postgres import connect
from tests.processes import Worker, run_at_once
from tests.raw import path_of, sqlite

LONG = 50_000
APPENDS = 20


def fill(store: SessionStore, stream_id: str, count: int) -> None:
    """Store a stream of so many rows."""
    for first in range(1, count + 1, 5_000):
        store.append(rows(stream_id, first, min(first + 4_999, count)))


def read_bytes() -> int:
    """Return how many bytes this process has read through system calls."""
    fields = dict(
        line.split(": ") for line in Path("/proc/self/io").read_text().splitlines() if line
    )
    return int(fields["rchar"])


def bytes_read_by_appends(url: str, first: int) -> int:
    """Append single events from a version on; return how many bytes that read from files."""
    with open_store(url) as store:
        store.append([row("a", first)])
        before = read_bytes()
        for version in range(first + 1, first + 1 + APPENDS):
            store.append([row("a", version)])
            store.version("a")
        return read_bytes() - before


def test_g1_an_append_to_a_long_sqlite_stream_reads_as_little_as_to_a_short_one(
    tmp_path: Path,
) -> None:
    found = {}
    for length in (100, LONG):
        url = f"sqlite:///{tmp_path / str(length)}.sqlite"
        with open_store(url) as store:
            fill(store, "a", length)
        found[length] = Worker(bytes_read_by_appends, url, length + 1).result()

    assert found[LONG] < found[100] + APPENDS * 65_536


def rows_fetched(server: psycopg.Connection) -> int:
    """Return how many rows of the log were read so far, by index or by scan."""
    server.execute(b"SELECT pg_stat_clear_snapshot()")
    fetched = server.execute(
        b"SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0)"
        b" FROM pg_stat_user_tables WHERE relid = 'stored_events'::regclass"
    ).fetchone()
    assert fetched is not None
    return int(fetched[0])


def test_g1_an_append_to_a_long_postgres_stream_reads_a_handful_of_rows(
    postgres_url: str,
) -> None:
    with open_store(postgres_url) as store:
        fill(store, "a", LONG)
    with connect(postgres_url) as server:
        server.execute(b"ANALYZE stored_events")
        before = rows_fetched(server)

        with open_store(postgres_url) as store:
            for version in range(LONG + 1, LONG + 1 + APPENDS):
                store.append([row("a", version)])
                store.version("a")

        time.sleep(1.1)  # a server process reports what it has read once a second, or at its end
        assert rows_fetched(server) - before <= 10 * APPENDS


def append_one(url: str, text: str) -> None:
    """Append one event to the long stream."""
    with open_store(url) as store:
        append_until_stored(store, "a", text)


def test_g2_twenty_processes_append_to_a_long_stream(store_url: str) -> None:
    with open_store(store_url) as store:
        fill(store, "a", LONG)

    run_at_once(append_one, [(store_url, str(n)) for n in range(20)])

    with open_store(store_url) as store:
        tail = list(store.read("a", after=LONG))
    assert versions(tail) == list(range(LONG + 1, LONG + 21))
    assert {event.data["text"] for event in tail} == {str(n) for n in range(20)}


def stored_bytes(url: str) -> int:
    """Return what the store takes on disk, indexes included."""
    if url.startswith("sqlite:"):
        path = path_of(url)
        return sum(each.stat().st_size for each in path.parent.glob(path.name + "*"))
    with connect(url) as server:
        found = server.execute(
            b"SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            b" WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_g3_five_hundred_turns_take_at_most_three_times_their_text(store_url: str) -> None:
    choice = random.Random(3)
    texts = [choice.randbytes(1_000).hex() for _ in range(500)]
    with open_store(store_url) as store:
        store.append([row("a", 1)])
        for index, text in enumerate(texts):
            store.append([row("a", 2 * index + 2, type_="turn/start", text="")])
            store.append([row("a", 2 * index + 3, text=text)])

    assert stored_bytes(store_url) <= 3 * sum(map(len, texts))


def written_while_idle(url: str) -> int:
    """Keep a store open with one follower for a while; return the bytes written by this process."""
    with open_store(url) as store, Follower(store) as follower:
        follower.wait_for(1)
        list(store.streams(limit=50))
        before = written_bytes()
        time.sleep(2)
        return written_bytes() - before


def written_bytes() -> int:
    """Return how many bytes this process has written through system calls."""
    fields = dict(
        line.split(": ") for line in Path("/proc/self/io").read_text().splitlines() if line
    )
    return int(fields["wchar"])


@pytest.fixture(scope="module")
def many_streams(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an SQLite store with a thousand streams."""
    url = f"sqlite:///{tmp_path_factory.mktemp('many') / 'store.sqlite'}"
    with open_store(url) as store:
        for number in range(1_000):
            store.append(rows(f"stream-{number:04}", 1, 20))
    return url


def test_g7_an_idle_store_with_a_follower_writes_next_to_nothing(many_streams: str) -> None:
    assert Worker(written_while_idle, many_streams).result() < 65_536


def plans_of(url: str, statements: list[str]) -> list[str]:
    """Return the lines of SQLite's plans for the statements."""
    with sqlite(url) as connection:
        return [
            str(step[3])
            for statement in statements
            for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]


def test_g7_every_reading_finds_its_rows_by_an_index_and_sorts_nothing(many_streams: str) -> None:
    statements: list[str] = []
    with open_store(many_streams) as store:
        assert isinstance(store, DatabaseSessionStore)
        assert isinstance(store.backend, SqliteBackend)
        with store.backend.datastore.reading() as connection:
            connection.set_trace_callback(statements.append)

        list(store.streams(after="stream-0500", limit=50, prefix="stream-0"))
        list(store.read("stream-0007", after=3, upto=9, limit=2, descending=True))
        list(store.read("stream-0007"))
        store.read_versions("stream-0007", [2, 3])
        store.last_of("stream-0007", ["user/message"])
        store.version("stream-0007")
        store.find_append("stream-0007", "k")
        store.load_snapshot("stream-0007")
        store.read_all(after=900, limit=100)

    selects = [statement for statement in statements if "stored_" in statement]
    plans = plans_of(many_streams, selects)
    assert len(selects) >= 9
    assert [plan for plan in plans if "TEMP B-TREE" in plan] == []
    assert [plan for plan in plans if plan.startswith("SCAN stored_")] == []
