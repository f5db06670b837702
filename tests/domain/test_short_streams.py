"""An answer's stream in a row: short where the message says the same, and exactly the stream when read."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from everfold.session.deciding import AppendEvent, message
from everfold.session.derive import message_of, stored_message
from everfold.session.digits import decode_numbers, encode_numbers
from everfold.session.doors import restore
from everfold.session.errors import CorruptStreamError, SettlementError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.lossless import encode
from everfold.session.short_streams import stored_form, with_whole_stream
from tests.domain.kit import (
    APPEND,
    HEADER,
    Record,
    assistant,
    composition,
    counting_means,
    log,
    new_session,
)
from tests.domain.logs import json_values
from tests.domain.streams import answered, spoken

TYPE = "assistant/message"
WORDS = "Boats come in on the tide. "

indexes = st.integers(0, 3)
pieces = st.sampled_from([*WORDS.split(), " ", "", "né", "\U0001f600", "{", '"'])
chunks: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(BlockStart, indexes, st.sampled_from(["text", "reasoning", "tool-call", "video"])),
    st.builds(TextDelta, indexes, pieces),
    st.builds(ReasoningDelta, indexes, pieces),
    st.builds(
        ToolCallDelta, indexes, st.sampled_from(["a", "b"]), pieces, st.sampled_from([None, "run"])
    ),
    st.builds(BlockEnd, indexes, st.fixed_dictionaries({"type": st.just("text"), "text": pieces})),
    st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
    st.builds(Finish, st.sampled_from(["stop", "tool-calls"])),
)


payloads = st.lists(st.tuples(chunks, st.integers(0, 2**41)), max_size=40).map(answered)


@st.composite
def odd_payloads(draw: st.DrawFn) -> Record:
    """Return payloads whose streams hold what no route writes; the core does not check them (R34)."""
    payload = draw(payloads)
    records: list[Json] = list(payload["stream"])
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(records)))
        oddity = draw(st.sampled_from(["value", "field", "lost", "order", "inner"]))
        record = records[place] if place < len(records) else {}
        if oddity == "value" or not isinstance(record, dict) or not record:
            records.insert(place, draw(json_values))
            continue
        name = draw(st.sampled_from([*record, "more"]))
        if oddity == "field":
            records[place] = {**record, name: draw(json_values)}
        elif oddity == "lost":
            records[place] = {key: value for key, value in record.items() if key != name}
        elif oddity == "order":
            records[place] = dict(reversed(record.items()))
        elif isinstance(record.get("chunk"), dict):
            records[place] = {**record, "chunk": {**record["chunk"], name: draw(json_values)}}
    return {**payload, "stream": records}


def stored(payload: Json) -> Record:
    """Return what is stored for a payload, decoded."""
    data, copy = encode(payload)
    form: Record = orjson.loads(stored_form(TYPE, data, copy))
    return form


def row(payload: Json) -> Recorded:
    """Return a row that holds this payload as it is."""
    state = {"eventId": "e", "time": 1, "data": payload}
    return Recorded("s", 2, TYPE, orjson.dumps(state))


@given(payloads | odd_payloads())
def test_whatever_a_stream_is_it_reads_as_the_bytes_it_was(payload: Record) -> None:
    data, copy = encode(payload)

    form = stored_form(TYPE, data, copy)

    assert len(form) <= len(data)
    assert orjson.dumps(with_whole_stream(TYPE, orjson.loads(form))) == data


def is_short(event: Recorded) -> bool:
    """Tell whether a row holds a short stream."""
    return isinstance(orjson.loads(event.state)["data"]["stream"], dict)


def test_an_answer_is_stored_short_by_every_door() -> None:
    payload = spoken("a long ", "quay, ", "and longer")
    session, batch = new_session(), [message(TYPE, payload), message(TYPE, payload)]
    wish = AppendEvent(TYPE, payload, {"surfaceOp": "append"}, "own-id")

    alone = session.append(TYPE, payload, APPEND)
    together = session.append_batch(batch)
    named = session.append_batch([wish, *batch])
    restored = restore(HEADER, log((TYPE, payload)), composition(), counting_means())

    events = [alone, *together, *named, restored.rows[1]]
    assert all(map(is_short, events))
    assert len({event.content() for event in events}) == 1


@given(payloads)
def test_an_appended_answer_is_read_with_its_whole_stream(payload: Record) -> None:
    session = new_session()

    event = session.append(TYPE, payload, APPEND)

    assert event.data == payload
    assert event.record()["data"] == payload
    assert session.append(TYPE, payload, APPEND).content() == event.content()


def test_an_answer_in_small_pieces_takes_less_than_twice_its_text() -> None:
    words = [f"{word} " for word in WORDS.split()] * 60

    form = orjson.dumps(stored(spoken(*words)))

    text = len("".join(words))
    assert len(words) == 360
    assert len(orjson.dumps(spoken(*words))) > 4 * text
    assert len(form) < 2 * text


def test_the_short_form_says_each_text_once() -> None:
    form = stored(spoken("a long ", "quay, ", "and longer"))

    assert form["stream"] == {
        "time0": 1_790_000_000_000,
        "records": [
            [0, {"type": "block-start", "index": 0, "blockType": "text"}],
            [20, "text-chunks", 0, 0, ")(,", "66"],
            [60, 0, 0],
            [20, "usage"],
            [20, {"type": "finish", "reason": {"kind": "stop"}}],
        ],
    }


def test_calls_and_thoughts_are_cut_from_their_blocks() -> None:
    call = {"type": "tool-call", "id": "c", "name": "run", "arguments": '{"in":"the harbour"}'}
    payload = answered(
        [
            (ReasoningDelta(0, "where is "), 10),
            (ReasoningDelta(0, "the harbour?"), 13),
            (ToolCallDelta(1, "c", '{"in":"the ', "run"), 20),
            (ToolCallDelta(1, "c", 'harbour"}'), 21),
            (BlockEnd(1, call), 22),
        ]
    )

    form = stored(payload)

    assert form["stream"] == {
        "time0": 10,
        "records": [
            [0, "reasoning-chunks", 0, 0, "+.", "%"],
            [10, "tool-call-chunks", 1, 1, "-", "", "c", "run"],
            [1, "tool-call-chunks", 1, 1, "+", "", "c"],
            [1, 1, 1],
        ],
    }


def test_what_the_message_does_not_say_is_kept_beside_it() -> None:
    payload = spoken("what was ", "mended")
    payload["message"]["content"] = [{"type": "text", "text": "what was replaced"}]

    form = stored(payload)

    assert form["stream"]["records"][1] == payload["stream"][1]
    assert form["stream"]["records"][2][1] == payload["stream"][2]["chunk"]


def test_a_row_with_a_whole_stream_reads_the_same() -> None:
    payload = spoken("a long ", "quay, ", "and longer")

    assert row(payload).data == row(stored(payload)).data == payload


def test_other_types_are_stored_as_they_are() -> None:
    payload = {"turn": 1, "step": 1, "stream": spoken("a ", "b")["stream"]}
    data = orjson.dumps(payload)

    assert stored_form("assistant/attempt", data, payload) is data


def test_nobody_can_append_a_short_stream() -> None:
    short = stored(spoken("a long ", "quay, ", "and longer"))

    with pytest.raises(SettlementError, match="stream"):
        new_session().append(TYPE, short, APPEND)


def test_a_message_is_read_without_its_stream() -> None:
    payload = stored(spoken("a long ", "quay, ", "and longer"))
    payload["stream"]["records"][1][4] = "no digits"
    event = row(payload)

    read = message_of(event)

    assert read == payload["message"]
    assert stored_message(event) is read


def test_the_message_of_a_payload_is_the_one_that_was_read_before() -> None:
    event = row(stored(spoken("a long ", "quay, ", "and longer")))

    read = message_of(event)
    data = event.data

    assert data["message"] is read
    assert message_of(event) is read


DAMAGES: list[tuple[Any, str]] = [
    ({"time0": 1}, "no time0, no records"),
    ({"time0": 1, "records": [[0, "text-chunks", 0, 0, ";", "!"]]}, "holds no 25 characters"),
    ({"time0": 1, "records": [[0, "text-chunks", 0, 7, "#", ""]]}, "has no block 7"),
    ({"time0": 1, "records": [[0, "tool-call-chunks", 0, 0, "#", ""]]}, "holds no 1 characters"),
    ({"time0": 1, "records": [[0, "text-chunks", 0, 0, " ", ""]]}, "' ' is no digit"),
    ({"time0": 1, "records": [[0, "text-chunks", 0, 0, "#", "~"]]}, "breaks off"),
    ({"time0": 1, "records": [[0, 0, 7]]}, "has no block 7"),
    ({"time0": 1, "records": [[0, "price"]]}, "is no chunk"),
    ({"time0": 1, "records": [7]}, "7 is no record"),
]


@pytest.mark.parametrize(("short", "reason"), DAMAGES, ids=[reason for _, reason in DAMAGES])
def test_a_damaged_short_stream_is_named(short: Json, reason: str) -> None:
    event = row({**assistant("a", {"type": "text", "text": "a long quay"}), "stream": short})

    with pytest.raises(CorruptStreamError, match="stream cannot be put together") as caught:
        _ = event.data

    assert reason in str(caught.value)
    assert caught.value.seq == 0


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "!"), (1, "#"), (45, "O"), (46, "P#"), (100, "X$"), (2115, "~O"), (2116, "PP#")],
)
def test_a_number_has_these_digits(number: int, text: str) -> None:
    assert encode_numbers([number]) == text
    assert decode_numbers(text) == [number]


@given(st.lists(st.integers(0, 2**53)))
def test_numbers_survive_as_text_that_json_does_not_escape(numbers: list[int]) -> None:
    text = encode_numbers(numbers)

    assert decode_numbers(text) == numbers
    assert len(orjson.dumps(text)) == len(text) + 2
