"""Answers of the Messages API, streamed through the real SDK."""

import pytest

from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import (
    BlockStart,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from everfold.llm.failure import FailureCode
from tests.providers.answers import Answer, ToolUse
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import claude, events, refused_amid
from tests.routes.kit import LOOK, request, user
from tests.routes.talk import Talk, Talking, blocks, finish, usage


@pytest.fixture
def talk(fake: StrictFake, versions: RequestVersions, talking: Talking) -> Talk:
    return claude(fake, versions, talking)


HI = request(user("hi"))
THINKING = {"type": "content_block_start", "index": 0}
STOP = {"type": "message_stop"}


def message_start(**counts: int) -> dict[str, object]:
    return {"type": "message_start", "message": {"content": [], "usage": counts}}


def ended(reason: str, **more: object) -> dict[str, object]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}}


def test_text_is_streamed_in_pieces(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer("Hello there", piece=6))

    chunks = talk.ask(HI)

    assert chunks[:3] == [BlockStart(0, "text"), TextDelta(0, "Hello "), TextDelta(0, "there")]
    assert blocks(chunks) == [{"type": "text", "text": "Hello there"}]
    assert finish(chunks) == Finish("stop")


def test_thinking_is_a_reasoning_block_of_its_own(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer("so", reasoning="hmmm", signature="c2ln", piece=2))

    chunks = talk.ask(HI)

    assert chunks[:3] == [
        BlockStart(0, "reasoning"),
        ReasoningDelta(0, "hm"),
        ReasoningDelta(0, "mm"),
    ]
    assert blocks(chunks) == [
        {"type": "reasoning", "text": "hmmm"},
        {"type": "text", "text": "so"},
    ]


def test_tool_calls_keep_their_arguments_as_written(fake: StrictFake, talk: Talk) -> None:
    calls = (ToolUse("c1", "look", '{"at": 1}'), ToolUse("c2", "look", '{"at": '))
    fake.will(Answer("", calls=calls, finish="tool-calls"))

    chunks = talk.ask(request(user("hi"), tools=[LOOK]))

    assert blocks(chunks) == [
        {"type": "tool-call", "id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "tool-call", "id": "c2", "name": "look", "arguments": '{"at": '},
    ]
    assert ToolCallDelta(0, "c1", '{"at', "look") in chunks
    assert finish(chunks).kind == "tool-calls"


def test_a_call_without_arguments_has_an_empty_object(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer("", calls=(ToolUse("c1", "look", ""),), finish="tool-calls"))

    (block,) = blocks(talk.ask(request(user("hi"), tools=[LOOK])))

    assert block["arguments"] == "{}"


def test_usage_counts_cached_tokens_as_input(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer(input_tokens=90, output_tokens=7, cached_tokens=64, cache_write_tokens=20))

    assert usage(talk.ask(HI)) == Usage(90, 7, 97, 64, 20)


def test_tokens_of_thinking_are_counted(fake: StrictFake, talk: Talk) -> None:
    counts = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 6}}
    text = {**THINKING, "content_block": {"type": "text", "text": "so"}}
    delta = {**ended("end_turn"), "usage": counts}
    fake.will(events(message_start(input_tokens=5, output_tokens=1), text, delta, STOP))

    assert usage(talk.ask(HI)) == Usage(5, 9, 14, None, None, 6)


REASONS = [
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("pause_turn", "stop"),
    ("max_tokens", "max-tokens"),
    ("model_context_window_exceeded", "max-tokens"),
    ("something_new", "stop"),
]


@pytest.mark.parametrize(("reason", "kind"), REASONS)
def test_stop_reasons_are_translated(fake: StrictFake, talk: Talk, reason: str, kind: str) -> None:
    text = {**THINKING, "content_block": {"type": "text", "text": "so"}}
    fake.will(events(message_start(), text, ended(reason), STOP))

    assert finish(talk.ask(HI)).kind == kind


def test_a_call_is_a_call_whatever_the_stop_reason(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer("", calls=(ToolUse("c1", "look"),), finish="stop"))

    assert finish(talk.ask(request(user("hi"), tools=[LOOK]))).kind == "tool-calls"


def test_a_refusal_is_a_failure_that_says_why(fake: StrictFake, talk: Talk) -> None:
    why = {"type": "refusal", "explanation": "It is about bio hazards."}
    fake.will(events(message_start(), ended("refusal", stop_details=why), STOP))

    failure = talk.failure(HI)

    assert failure.code == FailureCode.CONTENT_FILTER
    assert "It is about bio hazards." in failure.message


def test_thinking_without_text_is_named_and_kept(fake: StrictFake, talk: Talk) -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    redacted = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    fake.will(
        events(
            message_start(),
            {**THINKING, "content_block": thinking},
            {"type": "content_block_stop", "index": 0},
            {**THINKING, "index": 1, "content_block": redacted},
            {"type": "content_block_stop", "index": 1},
            ended("end_turn"),
            STOP,
        )
    )

    chunks = talk.ask(HI)

    hidden = {"type": "reasoning", "text": "[Reasoning that the provider does not show.]"}
    assert blocks(chunks) == [hidden, hidden]
    state = finish(chunks).replay_state
    assert state is not None
    assert [entry["type"] for entry in state["blocks"]] == ["thinking", "redacted_thinking"]


def test_a_block_of_an_unknown_type_is_kept(fake: StrictFake, talk: Talk) -> None:
    block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    fake.will(
        events(
            message_start(),
            {**THINKING, "content_block": block},
            {"type": "content_block_stop", "index": 0},
            ended("end_turn"),
            STOP,
        )
    )

    assert blocks(talk.ask(HI)) == [{**block, "type": "anthropic.server_tool_use"}]


def test_events_of_unknown_types_are_passed_over(fake: StrictFake, talk: Talk) -> None:
    text = {**THINKING, "content_block": {"type": "text", "text": "so"}}
    fake.will(events(message_start(), {"type": "news"}, text, ended("end_turn"), STOP))

    assert finish(talk.ask(HI)).kind == "stop"


def test_events_without_names_are_read(fake: StrictFake, talk: Talk) -> None:
    text = {**THINKING, "content_block": {"type": "text", "text": "so"}}
    fake.will(events(message_start(), text, ended("end_turn"), STOP, named=False))

    chunks = talk.ask(HI)

    assert TextDelta(0, "so") in chunks


def test_a_huge_answer_arrives_whole(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer("0123456789abcdef" * 131_072, piece=65_536))

    (block,) = blocks(talk.ask(HI))

    assert len(block["text"]) == 2**21


def test_an_overload_amid_the_answer_is_a_server_failure(fake: StrictFake, talk: Talk) -> None:
    fake.will(refused_amid("overloaded_error", "Overloaded"))

    failure = talk.failure(HI)

    assert (failure.code, failure.is_retryable) == (FailureCode.SERVER, True)
    assert "Overloaded" in failure.message
