"""The contract of `append` and `find_append`."""

import pytest

from everfold.session.errors import ConflictError, SessionExistsError
from everfold.session.ports import SessionStore
from everfold.store.contract.base import ContractPart
from everfold.store.contract.rows import row, rows, versions


class AppendContract(ContractPart):
    """Storing events: what is kept, what is refused, and what a refusal leaves behind."""

    def test_what_is_appended_is_read_back_byte_for_byte(self, store: SessionStore) -> None:
        events = [
            row("a", 1),
            row("a", 2, text="née \u2028 \U0001f600"),
            row("a", 3, type_="x/y", ignorable=True),
        ]

        store.append(events)

        assert list(store.read("a")) == events

    def test_append_returns_one_rising_position_for_each_event(self, store: SessionStore) -> None:
        first = store.append(rows("a", 1, 3))
        second = store.append(rows("b", 1, 2))

        positions = [*first, *second]
        assert len(positions) == 5
        assert positions == sorted(set(positions))
        assert [n.position for n in store.read_all()] == positions

    def test_events_of_several_streams_are_stored_in_one_append(self, store: SessionStore) -> None:
        positions = store.append([*rows("a", 1, 2), *rows("b", 1, 3)])

        assert len(positions) == 5
        assert (store.version("a"), store.version("b")) == (2, 3)

    def test_interleaved_streams_keep_the_order_they_were_given_in(
        self, store: SessionStore
    ) -> None:
        events = [row("a", 1), row("b", 1), row("a", 2), row("b", 2)]

        store.append(events)

        assert [n.event for n in store.read_all()] == events

    def test_a_conflict_in_one_stream_leaves_the_others_unwritten(
        self, store: SessionStore
    ) -> None:
        store.append(rows("b", 1, 2))

        with pytest.raises(ConflictError):
            store.append([*rows("a", 1, 2), row("b", 2)])

        assert store.version("a") == 0
        assert len(store.read_all()) == 2

    def test_a_batch_that_conflicts_at_its_first_version_stores_nothing(
        self, store: SessionStore
    ) -> None:
        store.append(rows("a", 1, 3))

        with pytest.raises(ConflictError):
            store.append(rows("a", 3, 6))

        assert store.version("a") == 3

    def test_a_conflict_carries_all_that_the_others_stored_in_order(
        self, store: SessionStore
    ) -> None:
        store.append(rows("a", 1, 2))
        others = rows("a", 3, 5, text="others")
        store.append(others)

        with pytest.raises(ConflictError) as caught:
            store.append([row("a", 3, text="mine")])

        assert caught.value.session_id == "a"
        assert caught.value.expected_version == 2
        assert list(caught.value.appended) == others

    def test_after_a_conflict_the_append_succeeds_at_the_next_version(
        self, store: SessionStore
    ) -> None:
        store.append(rows("a", 1, 2))
        with pytest.raises(ConflictError):
            store.append([row("a", 2)])

        store.append([row("a", 3)])

        assert versions(list(store.read("a"))) == [1, 2, 3]

    def test_a_taken_stream_id_is_refused(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 2))

        with pytest.raises(SessionExistsError) as caught:
            store.append([row("a", 1)])

        assert caught.value.session_id == "a"
        assert store.version("a") == 2

    def test_a_repeated_append_counts_as_done(self, store: SessionStore) -> None:
        batch = rows("a", 1, 4)
        first = store.append(batch)

        again = store.append(batch)

        assert list(again) == list(first)
        assert len(store.read_all()) == 4

    def test_a_repeated_append_counts_as_done_after_others_went_on(
        self, store: SessionStore
    ) -> None:
        store.append([row("a", 1)])
        batch = rows("a", 2, 3)
        first = store.append(batch)
        store.append(rows("a", 4, 6))

        again = store.append(batch)

        assert list(again) == list(first)
        assert store.version("a") == 6

    def test_a_repeated_append_to_several_streams_counts_as_done(self, store: SessionStore) -> None:
        batch = [*rows("a", 1, 2), *rows("b", 1, 2)]
        first = store.append(batch)

        again = store.append(batch)

        assert list(again) == list(first)
        assert len(store.read_all()) == 4

    def test_an_equal_payload_with_another_event_id_is_a_conflict(
        self, store: SessionStore
    ) -> None:
        store.append([row("a", 1), row("a", 2, text="same")])

        with pytest.raises(ConflictError):
            store.append([row("a", 2, text="same")])

    def test_text_with_nul_is_kept(self, store: SessionStore) -> None:
        event = row("a", 2, text="before\x00after")

        store.append([row("a", 1), event])

        assert next(iter(store.read("a", after=1))).data == {"text": "before\x00after"}

    def test_an_event_of_a_megabyte_is_kept(self, store: SessionStore) -> None:
        event = row("a", 2, text="x" * 1_000_000)

        store.append([row("a", 1), event])

        assert next(iter(store.read("a", after=1))) == event

    def test_a_batch_of_a_thousand_events_is_kept(self, store: SessionStore) -> None:
        batch = rows("a", 1, 1_000, text="y" * 600)

        positions = store.append(batch)

        assert len(positions) == 1_000
        assert list(store.read("a")) == batch


class AppendKeyContract(ContractPart):
    """An append under a key of the caller's."""

    def test_the_events_of_an_append_are_found_by_its_key(self, store: SessionStore) -> None:
        store.append([row("a", 1)])
        batch = rows("a", 2, 4)
        store.append(batch, key="k1")
        store.append([row("a", 5)])

        assert list(store.find_append("a", "k1")) == batch

    def test_an_unknown_key_finds_nothing(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 2), key="k1")

        assert list(store.find_append("a", "k2")) == []
        assert list(store.find_append("b", "k1")) == []

    def test_a_used_key_is_a_conflict_and_stores_nothing(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 2), key="k1")

        with pytest.raises(ConflictError):
            store.append([row("a", 3)], key="k1")

        assert store.version("a") == 2

    def test_a_refused_append_does_not_use_its_key_up(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 2))
        with pytest.raises(ConflictError):
            store.append([row("a", 2)], key="k1")
        event = row("a", 3)

        store.append([event], key="k1")

        assert list(store.find_append("a", "k1")) == [event]

    def test_each_stream_has_its_own_keys(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 2), key="k1")
        batch = rows("b", 1, 3)

        store.append(batch, key="k1")

        assert list(store.find_append("b", "k1")) == batch

    def test_a_repeated_append_under_a_key_counts_as_done(self, store: SessionStore) -> None:
        batch = rows("a", 1, 2)
        first = store.append(batch, key="k1")

        again = store.append(batch, key="k1")

        assert list(again) == list(first)
        assert list(store.find_append("a", "k1")) == batch
