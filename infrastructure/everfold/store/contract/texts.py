"""The contract of texts that no database can hold: refused the same way by every store."""

from collections.abc import Callable

import pytest

from everfold.session.errors import StoreTextError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore, StoredSnapshot
from everfold.store.contract.base import ContractPart
from everfold.store.contract.rows import row, versions

Use = Callable[[SessionStore, str], object]

READS: dict[str, Use] = {
    "find_append": lambda store, text: store.find_append(text, "key"),
    "last_of": lambda store, text: store.last_of(text, ["user/message"]),
    "last_of, topic": lambda store, text: store.last_of("a", ["user/message", text]),
    "load_snapshot": lambda store, text: store.load_snapshot(text),
    "read": lambda store, text: list(store.read(text)),
    "read, descending": lambda store, text: list(store.read(text, descending=True)),
    "read_all": lambda store, text: store.read_all(topics=[text]),
    "read_versions": lambda store, text: store.read_versions(text, [1]),
    "streams, after": lambda store, text: list(store.streams(after=text)),
    "streams, prefix": lambda store, text: list(store.streams(prefix=text)),
    "subscribe": lambda store, text: store.subscribe(topics=[text]),
    "topics": lambda store, text: store.topics(text),
    "version": lambda store, text: store.version(text),
}

WRITES: dict[str, Use] = {
    "append": lambda store, text: store.append([row(text, 1)]),
    "append, topic": lambda store, text: store.append([Recorded("a", 2, text, b"{}")]),
    "copy_stream, from": lambda store, text: store.copy_stream(text, 1, row("b", 1), ()),
    "copy_stream, to": lambda store, text: store.copy_stream("a", 1, row(text, 1), ()),
    "copy_stream, tail": lambda store, text: store.copy_stream(
        "a", 1, row("b", 1), [Recorded("b", 2, text, b"{}")]
    ),
    "delete_stream": lambda store, text: store.delete_stream(text),
    "save_snapshot": lambda store, text: store.save_snapshot(StoredSnapshot(text, 1, "t", b"{}")),
    "save_snapshot, topic": lambda store, text: store.save_snapshot(
        StoredSnapshot("a", 1, text, b"{}")
    ),
}


bad_texts = pytest.mark.parametrize(
    ("text", "fault"), [("a\0b", "a NUL"), ("a\ud800", "a lone surrogate")]
)


class TextContract(ContractPart):
    """NUL and lone surrogates in ids, prefixes and topics."""

    @bad_texts
    @pytest.mark.parametrize("use", READS.values(), ids=READS)
    def test_nothing_is_looked_up_by_text_that_no_database_can_hold(
        self, store: SessionStore, text: str, fault: str, use: Use
    ) -> None:
        store.append([row("a", 1)])

        with pytest.raises(StoreTextError, match=f"character 1 is {fault}"):
            use(store, text)

    @bad_texts
    @pytest.mark.parametrize("use", WRITES.values(), ids=WRITES)
    def test_nothing_is_stored_under_text_that_no_database_can_hold(
        self, store: SessionStore, text: str, fault: str, use: Use
    ) -> None:
        store.append([row("a", 1)])

        with pytest.raises(StoreTextError, match=f"character 1 is {fault}"):
            use(store, text)

        assert [each.stream_id for each in store.streams()] == ["a"]
        assert (store.version("a"), store.load_snapshot("a")) == (1, None)

    @pytest.mark.parametrize("text", ["a\0b", "a\ud800"])
    def test_a_key_may_be_any_text(self, store: SessionStore, text: str) -> None:
        store.append([row("a", 1)], key=text)

        assert versions(store.find_append("a", text)) == [1]
