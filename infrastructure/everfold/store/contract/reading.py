"""The contract of `read`, `read_versions`, `last_of`, `topics`, `version` and snapshots."""

import pytest

from everfold.session.ports import SessionStore, StoredSnapshot
from everfold.store.contract.base import ContractPart
from everfold.store.contract.rows import row, rows, versions

MORE_THAN_ONE_STATEMENT_BINDS = 40_000


class ReadContract(ContractPart):
    """Windows onto one stream."""

    @pytest.mark.parametrize(
        ("after", "upto", "limit", "descending", "expected"),
        [
            (0, None, None, False, [1, 2, 3, 4, 5, 6]),
            (2, None, None, False, [3, 4, 5, 6]),
            (0, 3, None, False, [1, 2, 3]),
            (2, 4, None, False, [3, 4]),
            (2, None, 2, False, [3, 4]),
            (1, 5, 2, False, [2, 3]),
            (6, None, None, False, []),
            (4, 4, None, False, []),
            (0, 0, None, False, []),
            (0, 99, None, False, [1, 2, 3, 4, 5, 6]),
            (0, None, 0, False, []),
            (0, None, None, True, [6, 5, 4, 3, 2, 1]),
            (0, None, 2, True, [6, 5]),
            (1, 4, None, True, [4, 3, 2]),
            (1, 4, 1, True, [4]),
        ],
    )
    def test_read_gives_the_window_that_was_asked_for(
        self,
        store: SessionStore,
        after: int,
        upto: int | None,
        limit: int | None,
        descending: bool,
        expected: list[int],
    ) -> None:
        store.append([*rows("a", 1, 6), *rows("b", 1, 9)])

        window = store.read("a", after=after, upto=upto, limit=limit, descending=descending)

        assert versions(list(window)) == expected

    def test_a_stream_that_is_not_there_reads_as_empty(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 2))

        assert list(store.read("b")) == []

    def test_an_append_while_a_read_is_half_done_disturbs_neither(
        self, store: SessionStore
    ) -> None:
        store.append(rows("a", 1, 1_500))
        reading = iter(store.read("a"))
        first = next(reading)

        store.append(rows("a", 1_501, 1_502))
        rest = list(reading)

        assert versions([first, *rest])[:1_500] == list(range(1, 1_501))
        assert store.version("a") == 1_502

    def test_the_version_is_that_of_the_last_row(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 7))

        assert store.version("a") == 7

    def test_the_version_of_no_stream_is_zero(self, store: SessionStore) -> None:
        assert store.version("a") == 0

    def test_read_versions_gives_exactly_those_rows_in_version_order(
        self, store: SessionStore
    ) -> None:
        events = rows("a", 1, 9)
        store.append(events)

        found = store.read_versions("a", [7, 2, 5])

        assert list(found) == [events[1], events[4], events[6]]

    def test_read_versions_leaves_out_what_is_not_there(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 3))

        assert versions(store.read_versions("a", [3, 4, 99])) == [3]
        assert list(store.read_versions("a", [])) == []
        assert list(store.read_versions("b", [1])) == []

    def test_read_versions_takes_more_than_one_statement_binds(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 3))

        found = store.read_versions("a", range(1, MORE_THAN_ONE_STATEMENT_BINDS))

        assert versions(found) == [1, 2, 3]


class TopicContract(ContractPart):
    """The newest row of some topics, and which topics there are."""

    @pytest.fixture
    def mixed(self, store: SessionStore) -> SessionStore:
        """A store with one stream of several topics."""
        store.append(
            [
                row("a", 1),
                row("a", 2, type_="t/x"),
                row("a", 3, type_="t/y"),
                row("a", 4, type_="t/x"),
                row("a", 5, type_="t/z", ignorable=True),
                *rows("b", 1, 1),
                row("b", 2, type_="t/y"),
            ]
        )
        return store

    @pytest.mark.parametrize(
        ("topics", "upto", "expected"),
        [
            (["t/x"], None, 4),
            (["t/x", "t/y"], None, 4),
            (["t/x", "t/y"], 3, 3),
            (["t/x"], 4, 4),
            (["t/x"], 3, 2),
            (["session/created"], None, 1),
            (["t/z?"], None, 5),
        ],
    )
    def test_last_of_gives_the_newest_row_of_the_topics(
        self, mixed: SessionStore, topics: list[str], upto: int | None, expected: int
    ) -> None:
        found = mixed.last_of("a", topics, upto=upto)

        assert found is not None
        assert found.originator_version == expected

    @pytest.mark.parametrize(
        ("topics", "upto"), [(["t/none"], None), (["t/z"], None), (["t/y"], 2), ([], None)]
    )
    def test_last_of_is_none_where_no_row_fits(
        self, mixed: SessionStore, topics: list[str], upto: int | None
    ) -> None:
        assert mixed.last_of("a", topics, upto=upto) is None

    @pytest.mark.parametrize(
        ("upto", "expected"),
        [
            (None, {"session/created", "t/x", "t/y", "t/z?"}),
            (4, {"session/created", "t/x", "t/y"}),
            (2, {"session/created", "t/x"}),
            (0, set()),
        ],
    )
    def test_topics_gives_each_topic_up_to_a_version_once(
        self, mixed: SessionStore, upto: int | None, expected: set[str]
    ) -> None:
        assert mixed.topics("a", upto=upto) == expected

    def test_a_stream_that_is_not_there_has_no_topics(self, mixed: SessionStore) -> None:
        assert mixed.topics("c") == frozenset()


class SnapshotContract(ContractPart):
    """Folded states beside the log."""

    def test_the_newest_snapshot_is_loaded(self, store: SessionStore) -> None:
        older = StoredSnapshot("a", 3, "fold@1", b"three")
        newer = StoredSnapshot("a", 9, "fold@1", b"nine\x00")
        store.append(rows("a", 1, 9))
        store.save_snapshot(newer)
        store.save_snapshot(older)

        assert store.load_snapshot("a") == newer

    def test_a_snapshot_above_the_asked_version_is_passed_over(self, store: SessionStore) -> None:
        older = StoredSnapshot("a", 3, "fold@1", b"three")
        store.append(rows("a", 1, 9))
        store.save_snapshot(older)
        store.save_snapshot(StoredSnapshot("a", 9, "fold@1", b"nine"))

        assert store.load_snapshot("a", upto=8) == older
        assert store.load_snapshot("a", upto=3) == older
        assert store.load_snapshot("a", upto=2) is None

    def test_a_snapshot_of_the_same_version_is_replaced(self, store: SessionStore) -> None:
        replacement = StoredSnapshot("a", 3, "fold@2", b"new")
        store.append(rows("a", 1, 3))
        store.save_snapshot(StoredSnapshot("a", 3, "fold@1", b"old"))

        store.save_snapshot(replacement)

        assert store.load_snapshot("a") == replacement

    def test_a_stream_without_snapshots_has_none(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 3))
        store.save_snapshot(StoredSnapshot("a", 3, "fold@1", b"a"))

        assert store.load_snapshot("b") is None

    def test_a_snapshot_is_no_event(self, store: SessionStore) -> None:
        store.append(rows("a", 1, 3))
        store.save_snapshot(StoredSnapshot("a", 3, "fold@1", b"a"))

        assert store.version("a") == 3
        assert len(store.read_all()) == 3
