"""Two writers of one stream on PostgreSQL, one of them half-way: one is told what the other did."""

import random
from collections.abc import Iterator

import pytest

from everfold.session.errors import (
    ConflictError,
    SessionExistsError,
    SessionNotFoundError,
    StoreBusyError,
    StoreError,
)
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore, StoredSnapshot
from everfold.store.contract.rows import row, rows, versions
from everfold.store.contract.sharing import run_together
from everfold.store.urls import open_store
from tests.postgres import connect, with_query
from tests.raw import stored_rows
from tests.store.open_writers import (
    Background,
    appending,
    open_writer,
    wait_until_blocked,
)

NAME = "stream-races"
ROUNDS = 40


@pytest.fixture
def store(postgres_url: str) -> Iterator[SessionStore]:
    """A store with the stream `a` of two rows, whose waits can be seen."""
    with open_store(with_query(postgres_url, application_name=NAME)) as store:
        store.append(rows("a", 1, 2))
        yield store


@pytest.mark.parametrize("count", [1, 3])
def test_who_loses_to_an_open_writer_is_told_what_that_one_stored(
    store: SessionStore, postgres_url: str, count: int
) -> None:
    theirs = rows("a", 3, 4, text="theirs")
    with open_writer(postgres_url, theirs) as other:
        mine = appending(store, rows("a", 3, 2 + count, text="mine"))
        wait_until_blocked(postgres_url, NAME)
        other.commit()
        outcome = mine.outcome()

    assert isinstance(outcome, ConflictError)
    assert (outcome.session_id, outcome.expected_version) == ("a", 2)
    assert list(outcome.appended) == theirs
    assert list(store.read("a", after=2)) == theirs


@pytest.mark.parametrize("count", [1, 3])
def test_who_waited_for_a_writer_that_gave_up_is_stored(
    store: SessionStore, postgres_url: str, count: int
) -> None:
    events = rows("a", 3, 2 + count)
    with open_writer(postgres_url, [row("a", 3)]) as other:
        mine = appending(store, events)
        wait_until_blocked(postgres_url, NAME)
        other.roll_back()
        outcome = mine.outcome()

    assert outcome == [n.position for n in store.read_all()][2:]
    assert list(store.read("a", after=2)) == events


def test_two_that_make_one_stream_are_told_apart(store: SessionStore, postgres_url: str) -> None:
    with open_writer(postgres_url, [row("new", 1, text="theirs")]) as other:
        mine = appending(store, [row("new", 1, text="mine")])
        wait_until_blocked(postgres_url, NAME)
        other.commit()
        outcome = mine.outcome()

    assert isinstance(outcome, SessionExistsError)
    assert [e.data["text"] for e in store.read("new")] == ["theirs"]


def test_a_copy_that_loses_its_id_to_an_open_writer_stores_nothing(
    store: SessionStore, postgres_url: str
) -> None:
    theirs = row("new", 1, text="theirs")
    with open_writer(postgres_url, [theirs]) as other:
        copying = Background(lambda: store.copy_stream("a", 2, row("new", 1), []))
        wait_until_blocked(postgres_url, NAME)
        other.commit()
        outcome = copying.outcome()

    assert isinstance(outcome, SessionExistsError)
    assert list(store.read("new")) == [theirs]


@pytest.mark.parametrize("count", [1, 3])
def test_a_repetition_of_what_is_still_being_committed_counts_as_done(
    store: SessionStore, postgres_url: str, count: int
) -> None:
    events = rows("a", 3, 2 + count)
    with open_writer(postgres_url) as lost:
        positions = lost.append(events)
        again = appending(store, events)
        wait_until_blocked(postgres_url, NAME)
        lost.commit()
        outcome = again.outcome()

    assert outcome == positions
    assert list(store.read("a", after=2)) == events


def test_a_race_in_one_of_several_streams_names_it_and_stores_nothing(
    store: SessionStore, postgres_url: str
) -> None:
    store.append([row("b", 1)])
    theirs = row("b", 2, text="theirs")
    with open_writer(postgres_url, [theirs]) as other:
        mine = appending(store, [row("a", 3), row("b", 2)])
        wait_until_blocked(postgres_url, NAME)
        other.commit()
        outcome = mine.outcome()

    assert isinstance(outcome, ConflictError)
    assert (outcome.session_id, list(outcome.appended)) == ("b", [theirs])
    assert store.version("a") == 2


def test_a_row_that_waits_for_its_predecessor_to_be_committed_is_refused(
    store: SessionStore, postgres_url: str
) -> None:
    with open_writer(postgres_url, [row("a", 3)]) as other:
        with pytest.raises(StoreError, match="gap"):
            store.append([row("a", 4)])
        with pytest.raises(SessionNotFoundError):
            store.append([row("b", 2)])
        other.commit()

    store.append([row("a", 4)])
    positions = [stored[0] for stored in stored_rows(postgres_url)]
    assert [stored[2] for stored in stored_rows(postgres_url)] == [1, 2, 3, 4]
    assert positions == sorted(positions)


def test_a_session_that_another_writer_holds_is_given_up_after_the_wait(
    store: SessionStore, postgres_url: str
) -> None:
    url = with_query(postgres_url, lock_timeout_s="0.2")
    with open_store(url) as hasty, open_writer(postgres_url, [row("a", 3)]) as other:
        with pytest.raises(StoreBusyError, match="another writer"):
            hasty.append([row("a", 3)])
        hasty.append([row("b", 1)])
        assert versions(list(hasty.read("a"))) == [1, 2]
        other.roll_back()

        hasty.append([row("a", 3)])
        assert hasty.version("a") == 3


def test_appends_to_the_same_streams_in_any_order_never_deadlock(store: SessionStore) -> None:
    streams = ["a", "b", "c", "d"]
    store.append([row(each, 1) for each in streams[1:]])

    def work(number: int) -> None:
        order = random.Random(number)
        for _ in range(ROUNDS):
            chosen = order.sample(streams, order.randint(2, 4))
            try:
                store.append([row(each, store.version(each) + 1) for each in chosen])
            except ConflictError:
                continue

    run_together(work)

    for each in streams:
        stored = versions(list(store.read(each)))
        assert stored == list(range(1, len(stored) + 1))


def test_an_append_of_more_streams_than_the_server_has_locks_is_stored(
    store: SessionStore,
) -> None:
    positions = store.append([row(f"many-{n:05}", 1) for n in range(20_000)])

    assert len(positions) == 20_000
    assert sum(1 for _ in store.streams(prefix="many-")) == 20_000


# Deleting.


def test_a_deletion_waits_for_an_open_writer_and_takes_its_rows_too(
    store: SessionStore, postgres_url: str
) -> None:
    with open_writer(postgres_url, [row("a", 3)]) as other:
        deleting = Background(lambda: store.delete_stream("a"))
        wait_until_blocked(postgres_url, NAME)
        other.commit()

        assert deleting.outcome() is True

    assert stored_rows(postgres_url) == []
    with pytest.raises(SessionExistsError, match="deleted"):
        store.append([row("a", 4)])


@pytest.mark.parametrize("events", [[row("a", 3)], rows("a", 3, 5), [row("a", 3), row("b", 1)]])
def test_an_append_that_waited_for_a_deletion_is_refused(
    store: SessionStore, postgres_url: str, events: list[Recorded]
) -> None:
    with open_writer(postgres_url) as other:
        other.connection.execute("SELECT delete_stream('a')")
        mine = appending(store, events)
        wait_until_blocked(postgres_url, NAME)
        other.commit()
        outcome = mine.outcome()

    assert isinstance(outcome, SessionExistsError)
    assert "deleted" in str(outcome)
    assert stored_rows(postgres_url) == []


def test_an_append_that_waited_for_a_deletion_that_was_given_up_is_stored(
    store: SessionStore, postgres_url: str
) -> None:
    with open_writer(postgres_url) as other:
        other.connection.execute("SELECT delete_stream('a')")
        mine = appending(store, [row("a", 3)])
        wait_until_blocked(postgres_url, NAME)
        other.roll_back()

        assert mine.outcome() == [store.read_all()[-1].position]

    assert versions(list(store.read("a"))) == [1, 2, 3]


def test_an_open_deletion_stops_no_other_stream(store: SessionStore, postgres_url: str) -> None:
    with open_writer(postgres_url) as other:
        other.connection.execute("SELECT delete_stream('a')")

        store.append(rows("b", 1, 2))
        store.append([row("b", 3)])

    assert store.version("b") == 3


def test_a_snapshot_that_is_saved_while_its_stream_is_deleted_is_not_left_behind(
    store: SessionStore, postgres_url: str
) -> None:
    with open_writer(postgres_url) as other:
        other.connection.execute("SELECT save_snapshot('a', 2, 'fold@1', 'secret')")
        deleting = Background(lambda: store.delete_stream("a"))
        wait_until_blocked(postgres_url, NAME)
        other.commit()
        assert deleting.outcome() is True

    store.save_snapshot(StoredSnapshot("a", 2, "fold@1", b"late"))
    with connect(postgres_url) as server:
        assert server.execute("SELECT count(*) FROM stored_snapshots").fetchone() == (0,)


def test_streams_that_are_deleted_while_they_grow_leave_no_row(
    store: SessionStore, postgres_url: str
) -> None:
    def work(number: int) -> None:
        for round_ in range(ROUNDS):
            stream_id = f"s{round_}"
            if number == 0:
                store.delete_stream(stream_id)
                continue
            try:
                store.append([row(stream_id, store.version(stream_id) + 1)])
            except (ConflictError, SessionExistsError):
                continue

    run_together(work)

    with connect(postgres_url) as server:
        orphans = server.execute(
            "SELECT originator_id FROM stored_events JOIN deleted_streams USING (originator_id)"
        ).fetchall()
    assert orphans == []
    for summary in store.streams(prefix="s"):
        assert versions(list(store.read(summary.stream_id))) == list(range(1, summary.version + 1))
