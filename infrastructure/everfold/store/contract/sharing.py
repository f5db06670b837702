"""The contract of a store that several openers share: threads, and one database opened twice."""

import threading
from collections.abc import Callable

import pytest

from everfold.session.errors import ConflictError, SessionExistsError
from everfold.session.ports import SessionStore, StoredSnapshot
from everfold.store.contract.base import ContractPart, StoreOpener
from everfold.store.contract.follower import PATIENCE_S, Follower
from everfold.store.contract.rows import row, rows, versions

THREADS = 6
APPENDS_EACH = 20


def run_together(work: Callable[[int], None], count: int = THREADS) -> None:
    """Run the work on threads at once, each with its number.

    Raises:
        AssertionError: one of them failed, or did not end.
    """
    failures: list[Exception] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait(PATIENCE_S)
        try:
            work(number)
        except Exception as error:  # noqa: BLE001 - reported by the calling thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "a thread hangs in the store"
    assert failures == []


def append_until_stored(store: SessionStore, stream_id: str, text: str) -> None:
    """Append one event at whatever version is free, deciding again after every conflict."""
    while True:
        version = store.version(stream_id) + 1
        try:
            store.append([row(stream_id, version, text=text)])
        except ConflictError:
            continue
        return


class ThreadContract(ContractPart):
    """One open store, many threads."""

    def test_threads_append_to_streams_of_their_own(self, store: SessionStore) -> None:
        def work(number: int) -> None:
            for version in range(1, APPENDS_EACH + 1):
                store.append([row(f"s{number}", version)])

        run_together(work)

        assert [s.version for s in store.streams()] == [APPENDS_EACH] * THREADS

    def test_threads_race_for_one_stream_and_every_event_is_stored_once(
        self, store: SessionStore
    ) -> None:
        store.append([row("a", 1)])

        def work(number: int) -> None:
            for count in range(APPENDS_EACH):
                append_until_stored(store, "a", f"{number}-{count}")

        run_together(work)

        stored = list(store.read("a", after=1))
        assert versions(stored) == list(range(2, THREADS * APPENDS_EACH + 2))
        assert {e.data["text"] for e in stored} == {
            f"{n}-{c}" for n in range(THREADS) for c in range(APPENDS_EACH)
        }

    def test_of_equal_expectations_exactly_one_succeeds(self, store: SessionStore) -> None:
        store.append([row("a", 1)])
        won: list[int] = []
        lost: list[ConflictError] = []

        def work(number: int) -> None:
            try:
                store.append([row("a", 2, text=str(number))])
                won.append(number)
            except ConflictError as error:
                lost.append(error)

        run_together(work)

        assert len(won) == 1
        assert len(lost) == THREADS - 1
        assert {error.appended[0].data["text"] for error in lost} == {str(won[0])}

    def test_a_follower_sees_what_racing_threads_store_in_order(self, store: SessionStore) -> None:
        def work(number: int) -> None:
            for count in range(APPENDS_EACH):
                store.append([row(f"{number}-{count}", 1)])

        with Follower(store) as follower:
            run_together(work)
            seen = follower.wait_for(THREADS * APPENDS_EACH)

        assert seen == list(store.read_all())


class DurabilityContract(ContractPart):
    """What another opener of the same database sees."""

    def test_everything_is_there_after_closing_and_opening_again(
        self, open_store: StoreOpener
    ) -> None:
        events = rows("a", 1, 4)
        snapshot = StoredSnapshot("a", 4, "fold@1", b"state")
        with open_store() as store:
            positions = store.append(events, key="k1")
            store.save_snapshot(snapshot)
            store.append([row("gone", 1)])
            store.delete_stream("gone")

        with open_store() as again:
            assert list(again.read("a")) == events
            assert [n.position for n in again.read_all()] == list(positions)
            assert list(again.find_append("a", "k1")) == events
            assert again.load_snapshot("a") == snapshot
            assert not again.delete_stream("gone")

    def test_a_commit_is_seen_by_another_opener_at_once(
        self, store: SessionStore, open_store: StoreOpener
    ) -> None:
        with open_store() as other:
            assert other.version("a") == 0

            store.append(rows("a", 1, 2))

            assert other.version("a") == 2

    def test_another_openers_append_makes_mine_a_conflict(
        self, store: SessionStore, open_store: StoreOpener
    ) -> None:
        store.append([row("a", 1)])
        theirs = row("a", 2, text="theirs")

        with open_store() as other:
            other.append([theirs])

        with pytest.raises(ConflictError) as caught:
            store.append([row("a", 2, text="mine")])
        assert list(caught.value.appended) == [theirs]

    def test_an_append_repeated_through_another_opener_counts_as_done(
        self, store: SessionStore, open_store: StoreOpener
    ) -> None:
        batch = rows("a", 1, 3)
        first = store.append(batch)

        with open_store() as other:
            assert list(other.append(batch)) == list(first)

    def test_a_subscription_follows_what_another_opener_stores(
        self, store: SessionStore, open_store: StoreOpener
    ) -> None:
        with Follower(store) as follower, open_store() as other:
            other.append(rows("a", 1, 3))

            assert [n.event.originator_version for n in follower.wait_for(3)] == [1, 2, 3]

    def test_a_deleted_stream_stays_refused_for_another_opener(
        self, store: SessionStore, open_store: StoreOpener
    ) -> None:
        store.append([row("a", 1)])
        store.delete_stream("a")

        with open_store() as other, pytest.raises(SessionExistsError, match="deleted"):
            other.append([row("a", 2)])

    def test_positions_stay_used_after_deleting_the_newest_stream_and_reopening(
        self, open_store: StoreOpener
    ) -> None:
        with open_store() as store:
            (*_, newest) = store.append(rows("a", 1, 3))
            store.delete_stream("a")

        with open_store() as again:
            (position,) = again.append([row("b", 1)])

        assert position > newest
