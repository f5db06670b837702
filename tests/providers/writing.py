"""Writes answers as server-sent events in each vendor's form, and as JSON where no stream is asked for."""

import json
from collections.abc import Iterator
from typing import Any

from tests.providers.answers import Answer, pieces

Json = dict[str, Any]

_CHAT_FINISH = {"stop": "stop", "tool-calls": "tool_calls", "max-tokens": "length"}
_ANTHROPIC_FINISH = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "max-tokens": "max_tokens",
    "content-filter": "refusal",
}


def frame(data: Json, event: str | None = None) -> bytes:
    """Return one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def chat_empty() -> list[bytes]:
    """Return events of a chat completion in which nothing is said."""
    deltas: list[Json] = [{}, {"content": ""}, {"content": None, "reasoning_content": ""}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [
        frame({**head, "choices": []}),
        *[frame({**head, "choices": [{"index": 0, "delta": delta}]}) for delta in deltas],
    ]


def responses_empty() -> list[bytes]:
    """Return events of a Responses answer in which nothing is said."""
    return [
        _event("response.in_progress", response={"id": "resp_1", "status": "in_progress"}),
        _event("keepalive", sequence_number=7),
        _event("response.output_text.delta", output_index=0, item_id="msg_1", delta=""),
    ]


def messages_empty() -> list[bytes]:
    """Return events of an Anthropic message in which nothing is said."""
    nothing = {"type": "text_delta", "text": ""}
    return [_event("ping"), _event("content_block_delta", index=0, delta=nothing)]


def chat_frames(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield a chat completion in pieces; the usage comes in a frame of its own, then `[DONE]`."""

    def choice(delta: Json, finish: str | None = None) -> bytes:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        return frame({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield choice({"role": "assistant", "content": ""})
    for piece in pieces(answer.reasoning, answer.piece):
        yield choice({answer.reasoning_field: piece, "content": None})
    for piece in pieces(answer.text, answer.piece):
        yield choice({"content": piece})
    for index, call in enumerate(answer.calls):
        function: Json = {"name": call.name, "arguments": ""}
        head = {"index": index, "id": call.id, "type": "function", "function": function}
        yield choice({"tool_calls": [head]})
        for piece in pieces(call.arguments, answer.piece):
            yield choice({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if answer.text or answer.reasoning or answer.calls:
        yield choice({}, _CHAT_FINISH.get(answer.finish, "content_filter"))
    if answer.input_tokens is not None:
        yield frame({"id": "chatcmpl-1", "model": model, "choices": [], "usage": _usage(answer)})
    yield b"data: [DONE]\n\n"


def _usage(answer: Answer) -> Json:
    read = answer.input_tokens or 0
    return {
        "prompt_tokens": read,
        "completion_tokens": answer.output_tokens,
        "total_tokens": read + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }


def responses_frames(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield a Responses answer in pieces."""
    items = list(_items(answer))
    yield _event("response.created", response={"id": "resp_1", "status": "in_progress"})
    for index, (item, parts) in enumerate(items):
        opened = {**item, "content": []} if item["type"] == "message" else item
        if item["type"] == "function_call":
            opened = {**item, "arguments": ""}
        yield _event("response.output_item.added", output_index=index, item=opened)
        for kind, piece in parts:
            yield _event(kind, output_index=index, item_id=item["id"], delta=piece)
        yield _event("response.output_item.done", output_index=index, item=item)
    yield _completed(answer, model, [item for item, _ in items])


def _items(answer: Answer) -> Iterator[tuple[Json, list[tuple[str, str]]]]:
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        item: Json = {"type": "reasoning", "id": "rs_1", "summary": summary}
        item["encrypted_content"] = answer.signature
        kind = "response.reasoning_summary_text.delta"
        yield item, [(kind, piece) for piece in pieces(answer.reasoning, answer.piece)]
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
        kind = "response.output_text.delta"
        yield item, [(kind, piece) for piece in pieces(answer.text, answer.piece)]
    for number, call in enumerate(answer.calls):
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": call.id}
        item |= {"name": call.name, "arguments": call.arguments}
        kind = "response.function_call_arguments.delta"
        yield item, [(kind, piece) for piece in pieces(call.arguments, answer.piece)]


def _completed(answer: Answer, model: str, output: list[Json]) -> bytes:
    response: Json = {"id": "resp_1", "model": model, "output": output, "status": "completed"}
    if answer.input_tokens is not None:
        response["usage"] = {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": answer.cached_tokens},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        }
    if answer.finish not in ("max-tokens", "content-filter"):
        return _event("response.completed", response=response)
    reason = "max_output_tokens" if answer.finish == "max-tokens" else "content_filter"
    response |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return _event("response.incomplete", response=response)


def _event(kind: str, **data: object) -> bytes:
    return frame({"type": kind, **data}, kind)


def messages_frames(answer: Answer, model: str) -> Iterator[bytes]:
    """Yield an Anthropic message in pieces."""
    read = (answer.input_tokens or 0) - answer.cached_tokens - answer.cache_write_tokens
    usage = {
        "input_tokens": read,
        "cache_read_input_tokens": answer.cached_tokens,
        "cache_creation_input_tokens": answer.cache_write_tokens,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    yield _event("message_start", message={**message, "usage": usage})
    yield _event("ping")
    index = -1
    for index, (block, deltas) in enumerate(_content_blocks(answer)):
        yield _event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    reason = _ANTHROPIC_FINISH[answer.finish]
    end = {"stop_reason": reason, "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": answer.output_tokens})
    yield _event("message_stop")


def _content_blocks(answer: Answer) -> Iterator[tuple[Json, list[Json]]]:
    if answer.reasoning:
        deltas: list[Json] = [
            {"type": "thinking_delta", "thinking": piece}
            for piece in pieces(answer.reasoning, answer.piece)
        ]
        deltas.append({"type": "signature_delta", "signature": answer.signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if answer.text:
        parts = pieces(answer.text, answer.piece)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in parts]
    for call in answer.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        parts = pieces(call.arguments, answer.piece)
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in parts]
