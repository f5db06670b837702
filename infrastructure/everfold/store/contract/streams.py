"""The contract of `streams`, `delete_stream` and `copy_stream`."""

import unicodedata

import pytest

from everfold.session.errors import SessionExistsError, SessionNotFoundError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore, StoredSnapshot
from everfold.store.contract.base import ContractPart
from everfold.store.contract.rows import row, rows, versions

ALIKE_IDS = (
    "Room",
    "room",
    "ROOM",
    "a b",
    "a.b",
    "a:b",
    "a_b",
    "a-b",
    unicodedata.normalize("NFC", "café"),
    unicodedata.normalize("NFD", "café"),
    "Комната",
    "комната",
    "я" * 100,
    "\uff5e",
    "\U0001f600",
)
"""Ids that a collation, a case-blind file system or a careless cleaning would mix up."""


class StreamListContract(ContractPart):
    """Listing what there is."""

    def test_streams_come_in_order_of_code_points(self, store: SessionStore) -> None:
        for stream_id in reversed(ALIKE_IDS):
            store.append([row(stream_id, 1)])

        assert [s.stream_id for s in store.streams()] == sorted(ALIKE_IDS)

    def test_pages_together_are_the_whole_list(self, store: SessionStore) -> None:
        for stream_id in ALIKE_IDS:
            store.append([row(stream_id, 1)])
        listed: list[str] = []

        while page := list(store.streams(after=listed[-1] if listed else "", limit=2)):
            assert len(page) <= 2
            listed += [summary.stream_id for summary in page]

        assert listed == sorted(ALIKE_IDS)

    def test_a_page_may_start_after_an_id_that_is_not_there(self, store: SessionStore) -> None:
        store.append([row("a", 1), row("c", 1)])

        assert [s.stream_id for s in store.streams(after="b")] == ["c"]

    def test_ids_that_look_alike_are_different_streams(self, store: SessionStore) -> None:
        for count, stream_id in enumerate(ALIKE_IDS, start=1):
            store.append(rows(stream_id, 1, count))

        assert [store.version(stream_id) for stream_id in ALIKE_IDS] == list(
            range(1, len(ALIKE_IDS) + 1)
        )

    def test_a_summary_holds_the_version_and_both_end_rows(self, store: SessionStore) -> None:
        events = rows("a", 1, 5)
        store.append([*events, *rows("b", 1, 2)])

        summary = next(store.streams())

        assert summary.stream_id == "a"
        assert summary.version == 5
        assert summary.created == events[0]
        assert summary.last == events[-1]

    @pytest.mark.parametrize(
        ("prefix", "expected"),
        [
            ("a", ["a%c", "a_c", "abc"]),
            ("a%", ["a%c"]),
            ("a_", ["a_c"]),
            ("", ["A", "a%c", "a_c", "abc", "b"]),
            ("abcd", []),
        ],
    )
    def test_a_prefix_is_taken_literally(
        self, store: SessionStore, prefix: str, expected: list[str]
    ) -> None:
        for stream_id in ("abc", "a%c", "a_c", "A", "b"):
            store.append([row(stream_id, 1)])

        assert [s.stream_id for s in store.streams(prefix=prefix)] == expected

    def test_a_prefix_may_end_in_the_highest_character(self, store: SessionStore) -> None:
        highest = "\U0010ffff"
        store.append([row(highest + "x", 1), row("a", 1)])

        assert [s.stream_id for s in store.streams(prefix=highest)] == [highest + "x"]

    def test_a_prefix_goes_with_pages(self, store: SessionStore) -> None:
        for stream_id in ("p1", "p2", "p3", "q1"):
            store.append([row(stream_id, 1)])

        page = store.streams(prefix="p", after="p1", limit=5)

        assert [summary.stream_id for summary in page] == ["p2", "p3"]

    def test_an_empty_store_lists_nothing(self, store: SessionStore) -> None:
        assert list(store.streams()) == []


class DeleteContract(ContractPart):
    """Removing a stream for ever."""

    def test_a_deleted_stream_is_gone_from_every_reading(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 3), key="k1")
        store.append(rows("b", 1, 1))
        store.save_snapshot(StoredSnapshot("a", 3, "fold@1", b"state"))

        was_there = store.delete_stream("a")

        assert was_there
        assert list(store.read("a")) == []
        assert store.version("a") == 0
        assert list(store.find_append("a", "k1")) == []
        assert store.load_snapshot("a") is None
        assert [summary.stream_id for summary in store.streams()] == ["b"]
        assert {n.event.originator_id for n in store.read_all()} == {"b"}

    def test_deleting_what_is_not_there_says_so(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 1))
        store.delete_stream("a")

        assert not store.delete_stream("a")
        assert not store.delete_stream("never")

    @pytest.mark.parametrize("version", [1, 4])
    def test_a_late_append_to_a_deleted_stream_is_refused(
        self, store: SessionStore, version: int
    ) -> None:
        store.append(rows("a", 1, 3))
        store.delete_stream("a")

        with pytest.raises(SessionExistsError, match="deleted"):
            store.append([row("a", version)])

        assert store.version("a") == 0

    def test_a_repeated_append_does_not_bring_a_deleted_stream_back(
        self, store: SessionStore
    ) -> None:
        batch = rows("a", 1, 3)
        store.append(batch)
        store.delete_stream("a")

        with pytest.raises(SessionExistsError, match="deleted"):
            store.append(batch)

        assert list(store.streams()) == []

    def test_positions_of_a_deleted_stream_are_not_given_again(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 2))
        (*_, newest) = store.append(rows("b", 1, 3))
        store.delete_stream("b")

        (position,) = store.append([row("a", 3)])

        assert position > newest
        assert [n.position for n in store.read_all(after=newest)] == [position]


def _header(child_id: str) -> Recorded:
    return row(child_id, 1, text=f"child {child_id}")


class CopyContract(ContractPart):
    """Making a stream from the first rows of another."""

    def test_a_copy_is_header_prefix_and_tail(self, store: SessionStore) -> None:
        events = rows("a", 1, 6)
        store.append(events)
        header, tail = _header("c"), rows("c", 5, 6, text="tail")

        version = store.copy_stream("a", 4, header, tail)

        copied = list(store.read("c"))
        assert version == 6
        assert versions(copied) == [1, 2, 3, 4, 5, 6]
        assert [copied[0], *copied[4:]] == [header, *tail]
        assert [(e.topic, e.state) for e in copied[1:4]] == [
            (e.topic, e.state) for e in events[1:4]
        ]

    def test_the_source_of_a_copy_is_unchanged(self, store: SessionStore) -> None:
        events = rows("a", 1, 6)
        store.append(events)

        store.copy_stream("a", 6, _header("c"), [])
        store.append([row("c", 7)])

        assert list(store.read("a")) == events

    def test_a_copy_can_be_of_the_header_alone(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 3))
        header = _header("c")

        version = store.copy_stream("a", 1, header, [])

        assert version == 1
        assert list(store.read("c")) == [header]

    def test_a_copy_of_a_copy_holds_the_first_streams_rows(self, store: SessionStore) -> None:
        events = rows("a", 1, 5)
        store.append(events)
        store.copy_stream("a", 5, _header("b"), [])

        store.copy_stream("b", 4, _header("c"), [])

        assert [e.state for e in store.read("c", after=1)] == [e.state for e in events[1:4]]

    def test_the_global_order_holds_a_copy_in_version_order(self, store: SessionStore) -> None:
        (*_, newest) = store.append(rows("a", 1, 400))

        store.copy_stream("a", 400, _header("c"), rows("c", 401, 402))

        followed = [n.event for n in store.read_all(after=newest)]
        assert versions(followed) == list(range(1, 403))
        assert followed == list(store.read("c"))

    def test_a_copy_onto_a_taken_id_changes_nothing(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 5))
        taken = rows("c", 1, 2)
        store.append(taken)

        with pytest.raises(SessionExistsError) as caught:
            store.copy_stream("a", 5, _header("c"), [])

        assert caught.value.session_id == "c"
        assert list(store.read("c")) == taken

    def test_a_copy_onto_a_deleted_id_is_refused(self, store: SessionStore) -> None:
        store.append([*rows("a", 1, 5), *rows("c", 1, 2)])
        store.delete_stream("c")

        with pytest.raises(SessionExistsError, match="deleted"):
            store.copy_stream("a", 5, _header("c"), [])

        assert store.version("c") == 0

    @pytest.mark.parametrize("is_deleted", [False, True])
    def test_a_copy_of_what_is_not_there_leaves_nothing(
        self, store: SessionStore, is_deleted: bool
    ) -> None:
        if is_deleted:
            store.append(rows("a", 1, 3))
            store.delete_stream("a")

        with pytest.raises(SessionNotFoundError) as caught:
            store.copy_stream("a", 3, _header("c"), [])

        assert caught.value.session_id == "a"
        assert store.version("c") == 0

    def test_a_copy_outlives_its_source(self, store: SessionStore) -> None:
        events = rows("a", 1, 3)
        store.append(events)
        store.copy_stream("a", 3, _header("c"), [])

        store.delete_stream("a")

        assert [e.state for e in store.read("c", after=1)] == [e.state for e in events[1:]]
