"""Dialects of answer streams that the strict server does not speak."""

from typing import Any

import pytest

from everfold.llm.assembly import Assembler
from everfold.llm.chunks import Chunk, TextDelta, Usage
from everfold.llm.failure import FailureCode, LlmError
from everfold.routes.openai_chat_reader import ChatReader
from everfold.routes.openai_responses_reader import HIDDEN, ResponsesReader
from everfold.routes.sending import AnswerRefusedError
from tests.routes.talk import blocks, finish, usage

Json = dict[str, Any]


def chat(*deltas: Json, finish_reason: str | None = "stop", **last: Any) -> list[Chunk]:
    reader = ChatReader()
    chunks: list[Chunk] = []
    for delta in deltas:
        chunks.extend(reader.feed({"choices": [{"delta": delta}]}))
    end = {"choices": [{"delta": {}, "finish_reason": finish_reason}], **last}
    return [*chunks, *reader.feed(end), *reader.end()]


def tool(index: int, id_: str | None = None, name: str | None = None, arguments: str = "") -> Json:
    function: Json = {"arguments": arguments}
    if name is not None:
        function["name"] = name
    entry: Json = {"index": index, "function": function}
    return {"tool_calls": [{**entry, "id": id_} if id_ is not None else entry]}


def test_calls_that_all_have_index_zero_are_told_apart_by_their_ids() -> None:
    chunks = chat(
        tool(0, "a", "look", "{}"), tool(0, "b", "look", '{"at":'), tool(0, "b", None, "1}")
    )

    assert [(block["id"], block["arguments"]) for block in blocks(chunks)] == [
        ("a", "{}"),
        ("b", '{"at":1}'),
    ]


def test_calls_that_come_at_once_are_put_together() -> None:
    chunks = chat(
        tool(0, "a", "look", '{"a"'), tool(1, "b", "look", '{"b"'), tool(0, None, None, ":1}"),
        tool(1, None, None, ":2}"),
    )  # fmt: skip

    assert [block["arguments"] for block in blocks(chunks)] == ['{"a":1}', '{"b":2}']


def test_a_call_without_an_id_gets_one() -> None:
    chunks = chat({"content": "x"}, tool(0, None, "look", "{}"))

    assert blocks(chunks)[1]["id"] == "call_1"


def test_calls_with_the_reason_stop_finish_as_tool_calls() -> None:
    assert finish(chat(tool(0, "a", "look", "{}"))).kind == "tool-calls"


def test_an_unknown_reason_is_a_stop() -> None:
    assert finish(chat({"content": "x"}, finish_reason="eos")).kind == "stop"


def test_text_after_a_call_is_a_block_of_its_own() -> None:
    chunks = chat({"content": "a"}, tool(0, "c", "look", "{}"), {"content": "b"})

    assert [block["type"] for block in blocks(chunks)] == ["text", "text", "tool-call"]
    assert TextDelta(2, "b") in chunks


def test_content_may_be_a_list_of_parts() -> None:
    chunks = chat({"content": [{"type": "text", "text": "ab"}, {"type": "text", "text": "c"}]})

    assert blocks(chunks) == [{"type": "text", "text": "abc"}]


def test_deepseek_counts_cached_tokens_under_its_own_name() -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}

    assert usage(chat({"content": "x"}, usage=counts)) == Usage(9, 1, None, 8)


@pytest.mark.parametrize(
    "counts",
    [
        {"total_tokens": 7},
        {"prompt_tokens": None, "completion_tokens": 2},
        {"prompt_tokens": 1.5, "completion_tokens": 2},
        "none",
    ],
)
def test_counts_that_are_none_cost_no_answer(counts: object) -> None:
    chunks = chat({"content": "hi"}, usage=counts)

    assert blocks(chunks) == [{"type": "text", "text": "hi"}]
    assert not any(isinstance(chunk, Usage) for chunk in chunks)


def test_details_that_are_no_counts_are_left_out() -> None:
    counts = {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "prompt_tokens_details": [],
        "total_tokens": "3",
    }

    assert usage(chat({"content": "hi"}, usage=counts)) == Usage(1, 2)


def test_arguments_that_come_as_an_object_are_written_as_json() -> None:
    chunks = chat(
        {
            "tool_calls": [
                {"index": 0, "id": "a", "function": {"name": "look", "arguments": {"at": 1}}}
            ]
        }
    )

    assert blocks(chunks)[0]["arguments"] == '{"at":1}'


def test_an_answer_without_a_reason_is_malformed() -> None:
    with pytest.raises(LlmError) as caught:
        chat({"content": "x"}, finish_reason=None)

    assert caught.value.failure.code == FailureCode.MALFORMED_RESPONSE


def responses(*events: Json) -> list[Chunk]:
    reader = ResponsesReader()
    chunks = [chunk for event in events for chunk in reader.feed(event)]
    return [*chunks, *reader.end()]


def added(index: int, item: Json) -> Json:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


DONE = {"type": "response.completed", "response": {"id": "r"}}


def test_parts_of_a_reasoning_summary_are_paragraphs() -> None:
    part = {"type": "response.reasoning_summary_part.added", "output_index": 0}
    delta = {"type": "response.reasoning_summary_text.delta", "output_index": 0}

    chunks = responses(
        added(0, {"type": "reasoning", "id": "rs"}),
        {**part, "summary_index": 0},
        {**delta, "delta": "a"},
        {**part, "summary_index": 1},
        {**delta, "delta": "b"},
        DONE,
    )

    assert blocks(chunks) == [{"type": "reasoning", "text": "a\n\nb"}]


def test_reasoning_without_a_summary_keeps_its_encrypted_form() -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    assembler = Assembler()

    for chunk in responses(added(0, {"type": "reasoning", "id": "rs"}), done, DONE):
        assembler.add(chunk, 1)

    answer = assembler.answer()
    assert answer.content == ({"type": "reasoning", "text": HIDDEN},)
    assert answer.replay_state is not None
    assert answer.replay_state["blocks"] == [item]


def test_a_refusal_is_text() -> None:
    delta = {"type": "response.refusal.delta", "output_index": 0, "delta": "I cannot"}

    chunks = responses(added(0, {"type": "message"}), delta, DONE)

    assert blocks(chunks) == [{"type": "text", "text": "I cannot"}]


def test_items_of_unknown_type_and_empty_messages_are_no_blocks() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 2, "delta": "x"}

    chunks = responses(
        added(0, {"type": "web_search_call"}), added(1, {"type": "message"}), delta, DONE
    )

    assert blocks(chunks) == [{"type": "text", "text": "x"}]


def test_counts_that_are_none_cost_no_response() -> None:
    chunks = responses(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "hi"},
        {"type": "response.completed", "response": {"usage": {"input_tokens": None}}},
    )

    assert blocks(chunks) == [{"type": "text", "text": "hi"}]


def test_a_failed_response_is_a_refusal() -> None:
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error"}}}

    with pytest.raises(AnswerRefusedError) as caught:
        responses(failed)

    assert caught.value.body == {"code": "server_error"}
