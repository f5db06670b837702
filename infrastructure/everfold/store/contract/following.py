"""The contract of the global order: `read_all` and `subscribe`, within one open store."""

import threading
from collections.abc import Callable

import pytest

from everfold.session.ports import Notification, SessionStore
from everfold.store.contract.base import ContractPart
from everfold.store.contract.follower import PATIENCE_S, Follower
from everfold.store.contract.rows import row, rows


class GlobalOrderContract(ContractPart):
    """Reading the global order without waiting."""

    def test_read_all_gives_every_stream_in_order_of_commit(self, store: SessionStore) -> None:
        batches = [rows("b", 1, 2), rows("a", 1, 1), rows("b", 3, 3), rows("a", 2, 2)]
        for batch in batches:
            store.append(batch)

        notifications = store.read_all()

        assert [n.event for n in notifications] == [e for batch in batches for e in batch]
        positions = [n.position for n in notifications]
        assert positions == sorted(set(positions))

    def test_read_all_goes_on_after_a_position(self, store: SessionStore) -> None:
        positions = store.append(rows("a", 1, 5))

        notifications = store.read_all(after=positions[2])

        assert [n.position for n in notifications] == list(positions[3:])

    def test_read_all_stops_at_its_limit(self, store: SessionStore) -> None:
        positions = store.append(rows("a", 1, 5))

        assert [n.position for n in store.read_all(limit=2)] == list(positions[:2])

    def test_read_all_gives_the_asked_topics_alone(self, store: SessionStore) -> None:
        store.append(
            [row("a", 1), row("a", 2, type_="t/x"), row("a", 3, type_="t/xy"), row("b", 1)]
        )

        found = store.read_all(topics=["t/x", "session/created"])

        assert [(n.event.originator_id, n.event.seq) for n in found] == [
            ("a", -1),
            ("a", 0),
            ("b", -1),
        ]

    def test_read_all_counts_its_limit_after_the_topics(self, store: SessionStore) -> None:
        store.append([*rows("a", 1, 4), row("a", 5, type_="t/x"), row("a", 6, type_="t/x")])

        found = store.read_all(limit=1, topics=["t/x"])

        assert [n.event.originator_version for n in found] == [5]

    def test_nothing_is_after_the_newest_position(self, store: SessionStore) -> None:
        (*_, newest) = store.append(rows("a", 1, 5))

        assert list(store.read_all(after=newest)) == []


class SubscribeContract(ContractPart):
    """Following the global order."""

    def test_a_subscription_gives_what_was_there_then_what_comes(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 3))

        with Follower(store) as follower:
            follower.wait_for(3)
            store.append(rows("b", 1, 2))
            seen = follower.wait_for(5)

        assert seen == list(store.read_all())

    def test_a_subscription_goes_on_after_a_position(self, store: SessionStore) -> None:
        positions = store.append(rows("a", 1, 3))

        with Follower(store, after=positions[1]) as follower:
            store.append([row("a", 4)])
            seen = follower.wait_for(2)

        assert [n.event.originator_version for n in seen] == [3, 4]

    def test_one_topic_that_is_no_list_is_refused(self, store: SessionStore) -> None:
        uses: list[Callable[[], object]] = [
            lambda: store.subscribe(topics="t/x"),
            lambda: store.read_all(topics="t/x"),
            lambda: store.last_of("a", "t/x"),
        ]
        for use in uses:
            with pytest.raises(TypeError, match=r"give a list: topics=\['t/x'\]"):
                use()

    def test_a_subscription_gives_the_asked_topics_alone(self, store: SessionStore) -> None:
        store.append([row("a", 1), row("a", 2, type_="t/x"), row("a", 3)])

        with Follower(store, topics=["t/x"]) as follower:
            follower.wait_for(1)
            store.append([row("a", 4), row("a", 5, type_="t/x")])
            seen = follower.wait_for(2)

        assert [n.event.originator_version for n in seen] == [2, 5]

    def test_a_subscriber_that_resumes_again_and_again_misses_and_repeats_nothing(
        self, store: SessionStore
    ) -> None:
        seen: list[Notification] = []
        for version in range(1, 6):
            store.append([row("a", version)])
            with Follower(store, after=seen[-1].position if seen else 0) as follower:
                seen += follower.wait_for(1)

        assert seen == list(store.read_all())

    def test_two_subscribers_see_the_same(self, store: SessionStore) -> None:
        with Follower(store) as one, Follower(store) as other:
            store.append(rows("a", 1, 50))
            store.append(rows("b", 1, 50))

            assert one.wait_for(100) == other.wait_for(100)

    def test_a_subscription_passes_a_long_backlog_in_order(self, store: SessionStore) -> None:
        for first in range(1, 3_001, 1_000):
            store.append(rows("a", first, first + 999))

        with Follower(store) as follower:
            seen = follower.wait_for(3_000)

        assert [n.event.originator_version for n in seen] == list(range(1, 3_001))

    def test_a_copied_stream_is_followed_like_any_other(self, store: SessionStore) -> None:
        (*_, newest) = store.append(rows("a", 1, 3))

        with Follower(store, after=newest) as follower:
            store.copy_stream("a", 3, row("c", 1), [row("c", 4)])
            seen = follower.wait_for(4)

        assert [n.event for n in seen] == list(store.read("c"))

    def test_leaving_from_another_thread_ends_a_waiting_iteration(
        self, store: SessionStore
    ) -> None:
        subscription = store.subscribe()
        iterator = subscription.__enter__()
        closer = threading.Timer(0.2, subscription.__exit__, (None, None, None))
        closer.start()

        seen = list(iterator)

        closer.join(PATIENCE_S)
        assert seen == []

    def test_an_append_from_inside_the_iteration_is_followed_too(self, store: SessionStore) -> None:
        store.append([row("a", 1)])
        seen: list[int] = []

        with store.subscribe() as notifications:
            for notification in notifications:
                seen.append(notification.event.originator_version)
                if len(seen) == 4:
                    break
                store.append([row("a", len(seen) + 1)])

        assert seen == [1, 2, 3, 4]
