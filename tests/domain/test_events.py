"""Stored events: topics, state bytes, decoding on demand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.session.composition import Composition
from everfold.session.detached import fold_surface
from everfold.session.errors import CorruptStreamError, EnvelopeError, EventSequenceError
from everfold.session.events import (
    ABSENT,
    Event,
    Recorded,
    placement_bytes,
    state_bytes,
    topic_of,
    topics_of,
    type_of,
)
from everfold.session.frozen import json_equal
from everfold.session.ids import seq_of, version_of
from everfold.session.lossless import encode
from tests.domain.kit import APPEND, new_session, user
from tests.domain.logs import json_values, texts

CURIOUS = [
    "a?",
    "b@2",
    "%3F",
    "%",
    "??",
    "@",
    "a\x00b",
    "\U0001f600",
    "",
    "é",
    "a b+c",
    "a%40",
    "~._-",
]


@pytest.mark.parametrize("is_ignorable", [True, False])
@pytest.mark.parametrize("type_", CURIOUS)
def test_a_curious_type_survives_as_a_topic(type_: str, is_ignorable: bool) -> None:
    topic = topic_of(type_, ignorable=is_ignorable)

    assert type_of(topic) == type_
    assert topic.endswith("?") == is_ignorable
    assert topic.isascii()
    assert topic.isprintable()


@given(texts, st.booleans())
def test_any_type_survives_as_a_topic(type_: str, is_ignorable: bool) -> None:
    row = Recorded("s", 2, topic_of(type_, ignorable=is_ignorable), b"{}")

    assert (row.type, row.ignorable) == (type_, is_ignorable)


@given(texts, texts, st.booleans(), st.booleans())
def test_no_two_types_share_a_topic(left: str, right: str, first: bool, second: bool) -> None:
    same = topic_of(left, ignorable=first) == topic_of(right, ignorable=second)

    assert same == ((left, first) == (right, second))


@pytest.mark.parametrize(
    "type_", ["image/offload", "user/message", "session/end-seed", "x y~z_+:."]
)
def test_a_common_type_is_its_own_topic(type_: str) -> None:
    assert topic_of(type_) == type_
    assert topic_of(type_, ignorable=True) == type_ + "?"


def test_a_type_has_the_topics_of_both_its_forms() -> None:
    assert topics_of("turn/start", "acme/how?") == (
        "turn/start",
        "turn/start?",
        "acme/how%3F",
        "acme/how%3F?",
    )


def test_a_shape_version_is_no_part_of_the_type() -> None:
    assert type_of("image/offload@2") == "image/offload"
    assert type_of("image/offload@2?") == "image/offload"


@given(json_values)
def test_a_row_gives_back_its_parts(value: object) -> None:
    data, _copy = encode(value)
    state = state_bytes(data, event_id="e", time_ms=-5)

    row = Recorded("s", version_of(4), topic_of("todo/write"), state)

    assert json_equal(row.data, value)
    assert (row.seq, row.time, row.event_id, row.type) == (4, -5, "e", "todo/write")
    assert (row.surface_op, row.source_event_seqs) == (ABSENT, ABSENT)
    assert row.content() == b',"data":' + data + b"}"


@pytest.mark.parametrize(
    ("surface_op", "sources"),
    [
        (None, ABSENT),
        (ABSENT, None),
        (ABSENT, [1, 2]),
        (5, "x"),
        ({"op": "replace", "startSeq": 1, "endSeq": 2}, [1, 2]),
    ],
)
def test_surface_fields_are_stored_as_given(surface_op: object, sources: object) -> None:
    state = state_bytes(
        b"{}", event_id="e", time_ms=0, placement=placement_bytes("x/new", surface_op, sources)
    )
    row = Recorded("s", 2, "x/new?", state)

    assert row.surface_op == surface_op
    assert row.source_event_seqs == sources
    assert not row.is_plain_append


def test_rows_are_equal_by_what_they_hold() -> None:
    first, again = Recorded("s", 2, "a", b"{}"), Recorded("s", 2, "a", b"{}")
    others = [
        Recorded("t", 2, "a", b"{}"),
        Recorded("s", 3, "a", b"{}"),
        Recorded("s", 2, "b", b"{}"),
        Recorded("s", 2, "a", b"{ }"),
    ]

    assert first == again
    assert hash(first) == hash(again)
    assert all(first != other for other in others)
    assert "seq 0" in repr(first)


def test_a_payload_is_decoded_once_while_it_is_held() -> None:
    row = new_session().append("user/message", user(), APPEND)

    held = row.data

    assert row.data is held


def test_a_payload_nobody_holds_is_not_kept_in_memory() -> None:
    row = new_session().append("user/message", user(), APPEND)
    first = row.data["content"]

    assert row.data["content"] == first


def test_the_stored_bytes_hold_neither_stream_nor_version() -> None:
    session = new_session(
        header={"version": 3, "id": "a-long-id", "createdAt": 0, "isSeeded": False}
    )
    session.append("todo/write", {})

    created, row = session.collect_events()

    assert b"a-long-id" not in created.state
    assert b"a-long-id" not in row.state
    assert row.topic == "todo/write"


def test_seqs_and_versions_convert_both_ways() -> None:
    assert [version_of(seq) for seq in (-1, 0, 1)] == [1, 2, 3]
    assert [seq_of(version_of(seq)) for seq in (-1, 0, 41)] == [-1, 0, 41]


def test_a_record_reads_back_as_the_event_it_was() -> None:
    event = Event("user/message", 3, user(), 7, "append", [1], ignorable=False)

    assert Event.of(event.record()) == event
    assert Event.of({"type": "x", "seq": 0, "data": None}).surface_op is ABSENT


@pytest.mark.parametrize("state", [b"{oh}", b'{"data":"\xff"}'])
def test_a_state_that_is_not_json_names_session_and_seq(state: bytes) -> None:
    with pytest.raises(CorruptStreamError, match=r"'s' cannot be read at seq 0: .*not JSON"):
        Recorded("s", 2, "a", state).envelope()


@pytest.mark.parametrize("state", [b"[]", b"{}", b"5"])
def test_a_state_that_is_no_envelope_is_refused(state: bytes) -> None:
    with pytest.raises(CorruptStreamError, match=r"'s' cannot be read at seq 0: .*envelope"):
        Recorded("s", 2, "a", state).envelope()


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, {"type": None}, {"type": ["x"]}])
def test_what_is_no_event_at_all_is_refused(value: Any) -> None:
    with pytest.raises(EnvelopeError, match="an object whose type is text"):
        Event.of(value)


def test_an_event_without_seq_is_never_the_next() -> None:
    event = Event.of({"type": "turn/start", "data": {}})

    with pytest.raises(EventSequenceError, match="seq -1 where 0 is next"):
        fold_surface([event], Composition())
