"""A damaged stream: what is before the damage is read, the damage is named, nothing else suffers."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from everfold.session.errors import CorruptStreamError, ForeignDatabaseError, StoreError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.contract.rows import row, rows, versions
from everfold.store.urls import open_store
from tests.postgres import connect
from tests.raw import sqlite

DAMAGED_SEQ = 3
DAMAGED_VERSION = 5


def damage(url: str, statement: str) -> None:
    """Run a statement on the row of stream `a` with version 5."""
    where = f" WHERE originator_id = 'a' AND originator_version = {DAMAGED_VERSION}"
    if url.startswith("sqlite:"):
        with sqlite(url) as connection:
            connection.execute(statement + where)
        return
    with connect(url) as server:
        server.execute((statement + where).encode())


def read_until_damage(store: SessionStore, *, descending: bool) -> tuple[list[Recorded], int]:
    """Read stream `a`; return what came, and the seq at which it ended."""
    events: list[Recorded] = []
    with pytest.raises(CorruptStreamError) as caught:
        collect(events, store.read("a", descending=descending))
    assert caught.value.session_id == "a"
    assert caught.value.seq is not None
    return events, caught.value.seq


def collect(events: list[Recorded], reading: Iterable[Recorded]) -> None:
    """Add what is read to the list, one by one."""
    for event in reading:
        events.append(event)


@pytest.mark.parametrize("length", [10, 7_000])
@pytest.mark.parametrize(("descending", "came"), [(False, [1, 2, 3, 4]), (True, None)])
def test_f2_a_gap_ends_the_reading_with_its_seq_after_the_whole_prefix(
    store_url: str, length: int, descending: bool, came: list[int] | None
) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, length))
        damage(store_url, "DELETE FROM stored_events")

        events, seq = read_until_damage(store, descending=descending)

        assert seq == DAMAGED_SEQ
        assert versions(events) == (came or list(range(length, DAMAGED_VERSION, -1)))


@pytest.mark.parametrize("state", ["''", "X'00000000'", "X'7B22'"])
def test_f3_an_overwritten_row_ends_the_reading_with_its_seq(store_url: str, state: str) -> None:
    value = state if store_url.startswith("sqlite:") else f"'\\x{state.strip('X').strip(chr(39))}'"
    with open_store(store_url) as store:
        store.append(rows("a", 1, 10))
        damage(store_url, f"UPDATE stored_events SET state = {value}")

        events, seq = read_until_damage(store, descending=False)

        assert seq == DAMAGED_SEQ
        assert versions(events) == [1, 2, 3, 4]
        assert versions(list(store.read("a", upto=4))) == [1, 2, 3, 4]


def test_f4_one_damaged_stream_of_a_hundred_stops_no_other(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 10))
        for number in range(99):
            store.append(rows(f"sound-{number:02}", 1, 3))
        damage(store_url, "DELETE FROM stored_events")

    with open_store(store_url) as store:
        assert len(list(store.streams())) == 100
        for number in range(99):
            assert versions(list(store.read(f"sound-{number:02}"))) == [1, 2, 3]
        read_until_damage(store, descending=False)


def test_a_damaged_prefix_is_not_copied(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 10))
        damage(store_url, "DELETE FROM stored_events")

        with pytest.raises(StoreError):
            store.copy_stream("a", 8, row("c", 1), [])

        assert store.version("c") == 0
        assert store.copy_stream("a", 4, row("c", 1), []) == 4


def test_a_row_that_was_written_past_a_gap_is_not_taken_for_the_end(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 10))
        damage(store_url, "DELETE FROM stored_events")

        store.append([row("a", 11)])

        assert store.version("a") == 11
        assert read_until_damage(store, descending=False)[1] == DAMAGED_SEQ


def test_a_file_that_lost_its_end_is_called_damaged(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with open_store(sqlite_url) as store:
        store.append(rows("a", 1, 100))
    os.truncate(path, 5_000)

    with pytest.raises(
        ForeignDatabaseError, match=r"is damaged: database disk image is malformed$"
    ):
        open_store(sqlite_url)
