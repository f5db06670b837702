"""Reports from the field, groups I, J and L, where they concern the store alone."""

import contextlib
import os
import stat
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from everfold.session.errors import SessionExistsError
from everfold.session.ports import SessionStore, StoredSnapshot
from everfold.store.contract.follower import Follower
from everfold.store.contract.rows import row, rows, versions
from everfold.store.contract.streams import ALIKE_IDS
from everfold.store.urls import open_store
from tests.postgres import connect, fresh_schema, with_query
from tests.processes import Worker
from tests.raw import path_of, sqlite

SECRET = "a-text-that-must-vanish"


def test_i2_ids_that_a_careless_cleaning_would_merge_are_distinct_streams(store_url: str) -> None:
    with open_store(store_url) as store:
        for stream_id in ALIKE_IDS:
            store.append([row(stream_id, 1), row(stream_id, 2, text=stream_id)])

        for stream_id in ALIKE_IDS:
            assert [e.data["text"] for e in store.read(stream_id, after=1)] == [stream_id]


def test_i2_composed_and_decomposed_letters_are_different_ids(store_url: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    with open_store(store_url) as store:
        store.append(rows(composed, 1, 2))

        assert store.version(decomposed) == 0


def modes_under_umask(url: str, folder: str) -> dict[str, int]:
    """Create a store in a new folder under umask 022; return the mode of everything there."""
    os.umask(0o022)
    with open_store(url) as store:
        store.append(rows("a", 1, 50))
        paths = [Path(folder), *Path(folder).rglob("*")]
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}


def test_i5_files_of_a_store_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "by-the-store"
    url = f"sqlite:///{folder / 'store.sqlite'}"

    modes = Worker(modes_under_umask, url, str(tmp_path / "made")).result()

    assert {"store.sqlite", "store.sqlite-wal", "store.sqlite-shm"} <= set(modes)
    assert modes.pop("made") == 0o700
    assert modes.pop("by-the-store") == 0o700
    assert set(modes.values()) == {0o600}


def store_at(url: str, zone: str) -> list[int]:
    """In a time zone, store an event of a moment and read its time back."""
    os.environ["TZ"] = zone
    time.tzset()
    with open_store(url) as store:
        version = store.version("a") + 1
        store.append([row("a", version)])
        return [event.time for event in store.read("a")]


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "UTC"])
def test_j1_the_time_of_an_event_is_the_same_in_every_zone(store_url: str, zone: str) -> None:
    url = store_url
    if url.startswith("postgresql:"):
        url = with_query(url, options="-c TimeZone=America/New_York")

    times = Worker(store_at, url, zone).result()

    assert times == [1_700_000_000_000]


def test_j2_a_hundred_appends_of_one_instant_are_all_in_time(store_url: str) -> None:
    with open_store(store_url) as store, open_store(store_url) as other:
        for version in range(1, 101):
            (store if version % 2 else other).append([row("a", version)])

        assert versions(list(store.read("a"))) == list(range(1, 101))


Tenants = tuple[str, str]


@pytest.fixture(params=["sqlite", "postgres"])
def tenants(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tenants]:
    """The stores of two tenants: two files, or two schemas of one server."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 't1.sqlite'}", f"sqlite:///{tmp_path / 't2.sqlite'}"
        return
    server_url: str = request.getfixturevalue("postgres_server_url")
    with fresh_schema(server_url) as one, fresh_schema(server_url) as two:
        yield one, two


def test_l2_the_same_id_of_two_tenants_names_two_streams(tenants: Tenants) -> None:
    with open_store(tenants[0]) as one, open_store(tenants[1]) as two:
        ours, theirs = rows("support-1", 1, 3, text="t1"), rows("support-1", 1, 2, text="t2")
        one.append(ours)
        two.append(theirs)

        assert list(one.read("support-1")) == ours
        assert list(two.read("support-1")) == theirs
        assert not two.delete_stream("support-2")
        assert one.delete_stream("support-1")
        assert list(two.read("support-1")) == theirs


def test_l4_a_position_of_one_tenant_never_shows_another_ones_events(tenants: Tenants) -> None:
    with open_store(tenants[0]) as one, open_store(tenants[1]) as two:
        (*_, last) = one.append(rows("t1-stream", 1, 5))
        two.append(rows("t2-stream", 1, 8))

        with Follower(two, after=last) as follower:
            one.append(rows("t1-stream", 6, 9))
            two.append([row("t2-stream", 9)])
            seen = follower.wait_for(1)
        replayed = two.read_all(after=last)

    assert {n.event.originator_id for n in [*seen, *replayed]} == {"t2-stream"}


def test_l5_no_byte_of_a_deleted_stream_is_left_in_a_vacuumed_file(sqlite_url: str) -> None:
    with open_store(sqlite_url) as store:
        fill_and_delete(store)
    with sqlite(sqlite_url) as keeper:
        keeper.execute("VACUUM")
        keeper.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    path = path_of(sqlite_url)
    for each in path.parent.glob(path.name + "*"):
        assert SECRET.encode() not in each.read_bytes()


def test_l5_no_byte_of_a_deleted_stream_is_left_in_vacuumed_tables(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        fill_and_delete(store)
    with connect(postgres_url) as keeper:
        keeper.execute(b"VACUUM FULL")
        keeper.execute(b"CHECKPOINT")
        files = keeper.execute(
            b"SELECT pg_relation_filepath(oid) FROM pg_class"
            b" WHERE relnamespace = current_schema()::regnamespace"
            b" AND pg_relation_filepath(oid) IS NOT NULL"
        ).fetchall()
        assert files
        for (file,) in files:
            content = keeper.execute("SELECT pg_read_binary_file(%s)", [file]).fetchone()
            assert content is not None
            assert SECRET.encode() not in content[0]


def fill_and_delete(store: SessionStore) -> None:
    """Store a secret in every table, beside a stream that stays, and delete its stream."""
    store.append(rows("stays", 1, 20))
    store.append(rows("goes", 1, 20, text=SECRET), key=SECRET)
    store.save_snapshot(StoredSnapshot("goes", 20, "fold@1", SECRET.encode()))
    assert store.delete_stream("goes")


def test_l5_deleting_again_after_a_failure_is_no_error(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 5))

        assert [store.delete_stream("a"), store.delete_stream("a")] == [True, False]


def test_l5_a_fork_outlives_the_deleted_stream_and_a_late_append_is_refused(
    store_url: str,
) -> None:
    late = row("a", 6, text="a late delivery")
    with open_store(store_url) as store:
        store.append(rows("a", 1, 5))
        store.copy_stream("a", 5, row("fork", 1), [])
        store.delete_stream("a")

        with pytest.raises(SessionExistsError, match="deleted"):
            store.append([late])

        assert versions(list(store.read("fork"))) == [1, 2, 3, 4, 5]
        assert [summary.stream_id for summary in store.streams()] == ["fork"]


def test_l5_a_late_snapshot_of_a_deleted_stream_brings_nothing_back(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 5))
        store.delete_stream("a")

        with contextlib.suppress(SessionExistsError):
            store.save_snapshot(StoredSnapshot("a", 5, "fold@1", SECRET.encode()))

        assert store.load_snapshot("a") is None
