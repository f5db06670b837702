"""The exact stream: packing loses nothing, and what is not valid Unicode is mended at the edge."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.assembly import Answer, Assembler
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
from everfold.llm.failure import LlmFailure
from everfold.llm.stream import StreamRecordError, TimedChunk, pack, unpack

INDEXES = st.integers(0, 2)
TEXTS = st.text(max_size=5)
COUNTS = st.integers(0, 1000)
CHUNKS: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(BlockStart, INDEXES, st.sampled_from(["text", "reasoning", "tool-call", "video"])),
    st.builds(TextDelta, INDEXES, TEXTS),
    st.builds(ReasoningDelta, INDEXES, TEXTS),
    st.builds(
        ToolCallDelta,
        INDEXES,
        st.sampled_from(["a", "b"]),
        TEXTS,
        st.sampled_from([None, "run", "stop"]),
    ),
    st.builds(BlockEnd, INDEXES, st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})),
    st.builds(Usage, COUNTS, COUNTS, reasoning_tokens=st.none() | COUNTS),
    st.builds(
        Finish,
        st.sampled_from(["stop", "tool-calls", "max-tokens", "aborted", "error"]),
        st.none() | st.builds(LlmFailure, TEXTS, TEXTS, offload_images=st.none() | COUNTS),
        st.none() | st.fixed_dictionaries({"response": st.none() | TEXTS}),
    ),
)
STREAMS = st.lists(st.builds(TimedChunk, st.integers(0, 2**41), CHUNKS), max_size=30)


def assembled(*chunks: Chunk, is_whole: bool = True) -> Answer:
    assembler = Assembler()
    for time, chunk in enumerate(chunks):
        assembler.add(chunk, time)
    return assembler.answer(is_whole=is_whole)


@given(STREAMS)
def test_packing_and_unpacking_gives_the_same_chunks_at_the_same_times(
    stream: list[TimedChunk],
) -> None:
    assert unpack(pack(stream)) == stream


def test_deltas_of_one_block_become_one_record() -> None:
    stream = [TimedChunk(10, TextDelta(0, "a")), TimedChunk(7, TextDelta(0, "b"))]

    records = pack(stream)

    assert records == [
        {"type": "text-chunks", "time0": 10, "index": 0, "dt": [-3], "texts": ["a", "b"]}
    ]


def test_a_failed_attempt_is_recorded_as_the_reference_system_does() -> None:
    failure = LlmFailure("too large", "IMAGE_OFFLOAD_REQUIRED", offload_images=1)

    records = pack([TimedChunk(5, Finish("error", failure))])

    reason = {"kind": "error", "failure": failure.to_json()}
    assert records == [{"type": "chunk", "time": 5, "chunk": {"type": "finish", "reason": reason}}]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "it is NoneType, not an object"),
        ({"type": "video-chunks"}, "type 'video-chunks' is not one of a stream's"),
        ({"type": "text-chunks", "time0": "x"}, "time0 'x' is not a whole number"),
        (
            {"type": "text-chunks", "time0": 1, "index": 0, "dt": [], "texts": ["a", "b"]},
            "2 texts do not go with 0 gaps",
        ),
        ({"type": "chunk", "time": 1, "chunk": {"type": "what"}}, "chunk type 'what' is not known"),
        (
            {"type": "chunk", "time": 1, "chunk": {"type": "finish", "reason": {"kind": "bored"}}},
            "finish reason 'bored' is not known",
        ),
    ],
)
def test_a_malformed_record_is_refused_by_its_position(record: Any, reason: str) -> None:
    good = {"type": "chunk", "time": 1, "chunk": {"type": "text-delta", "index": 0, "text": ""}}

    with pytest.raises(StreamRecordError) as caught:
        unpack([good, record])

    assert str(caught.value) == f"stream record 1: {reason}"


def test_halves_of_a_character_in_two_deltas_are_joined() -> None:
    assembler = Assembler()

    assembler.add(TextDelta(0, "a\ud83d"), 1)
    assembler.add(TextDelta(0, "\ude00b"), 2)

    answer = assembler.answer()
    assert (answer.text, answer.repairs) == ("a😀b", ())
    assert assembler.records[0]["texts"] == ["a", "😀b"]


def test_a_half_that_stays_alone_is_replaced_and_reported() -> None:
    answer = assembled(TextDelta(0, "a\ud83d"), Finish("stop"))

    assert answer.text == "a\ufffd"
    assert [repair.path for repair in answer.repairs] == ["content[0]"]


def test_a_lone_surrogate_in_a_whole_block_is_replaced_and_reported() -> None:
    answer = assembled(BlockEnd(0, {"type": "text", "text": "x\udc00"}), Finish("stop"))

    assert answer.content == ({"type": "text", "text": "x\ufffd"},)
    assert [repair.path for repair in answer.repairs] == ["content[0].text"]


def test_empty_text_is_no_content_a10() -> None:
    replay = {"response": 1, "blocks": ["first", "second"]}

    answer = assembled(
        BlockEnd(0, {"type": "text", "text": ""}),
        BlockEnd(1, {"type": "reasoning", "text": "hm"}),
        Finish("stop", replay_state=replay),
    )

    assert answer.content == ({"type": "reasoning", "text": "hm"},)
    assert answer.replay_state == {"response": 1, "blocks": ["second"]}


def test_blocks_come_in_the_order_of_their_index() -> None:
    answer = assembled(TextDelta(1, "b"), ReasoningDelta(0, "a"), TextDelta(1, "c"))

    assert answer.content == (
        {"type": "reasoning", "text": "a"},
        {"type": "text", "text": "bc"},
    )


def test_half_a_tool_call_is_not_part_of_an_answer_that_broke_off() -> None:
    answer = assembled(
        TextDelta(0, "I look"), ToolCallDelta(1, "c", '{"a":', "look"), is_whole=False
    )

    assert answer.content == ({"type": "text", "text": "I look"},)


def test_calls_without_an_id_or_with_the_same_id_get_ids_of_their_own() -> None:
    call = {"type": "tool-call", "name": "run", "arguments": "{}"}

    answer = assembled(
        BlockEnd(0, {**call, "id": "x"}),
        BlockEnd(1, {**call, "id": "x"}),
        BlockEnd(2, {**call, "id": ""}),
    )

    assert [block["id"] for block in answer.tool_calls] == ["x", "x-2", "call-2"]
    assert [repair.path for repair in answer.repairs] == ["content[1].id", "content[2].id"]


def test_numbers_that_json_cannot_hold_are_mended_in_a_replay_state() -> None:
    answer = assembled(
        TextDelta(0, "x"), Finish("stop", replay_state={"big": 2**60, "nan": float("nan")})
    )

    assert answer.replay_state == {"big": str(2**60), "nan": None}
    assert [repair.path for repair in answer.repairs] == ["replayState.big", "replayState.nan"]
