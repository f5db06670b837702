"""Reads the stream of a chat completion, in all the dialects that compatible servers speak."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from everfold.llm.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.routes.sending import Event, empty, malformed
from everfold.routes.token_counts import count, usage_of

_FINISHES: Mapping[str, FinishKind] = {
    "stop": "stop",
    "length": "max-tokens",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
}
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass
class _Call:
    index: int
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class ChatReader:
    """A `Reader` of one answer. Text and reasoning come one after another, calls may come at once."""

    def __init__(self) -> None:
        self._count = 0
        self._open: tuple[int, str, list[str]] | None = None
        self._calls: dict[int, _Call] = {}
        self._closed_calls: list[_Call] = []
        self._usage: Usage | None = None
        self._finish: str | None = None

    def feed(self, event: Event) -> Iterator[Chunk]:
        """As `Reader.feed`."""
        self._usage = _usage(event.get("usage")) or self._usage
        for choice in event.get("choices") or ():
            yield from self._delta(choice.get("delta") or {})
            self._finish = choice.get("finish_reason") or self._finish

    def end(self) -> Iterator[Chunk]:
        """As `Reader.end`."""
        if self._finish == "content_filter":
            text = "the provider's content filter ended the answer"
            raise LlmError(LlmFailure(text, FailureCode.CONTENT_FILTER))
        if self._count == 0:
            raise LlmError(empty())
        yield from self._close_text()
        calls = [*self._closed_calls, *self._calls.values()]
        for call in sorted(calls, key=lambda call: call.index):
            yield BlockEnd(call.index, _call_block(call))
        if self._usage is not None:
            yield self._usage
        if self._finish is None:
            raise LlmError(malformed("it ended without a reason"))
        kind = _FINISHES.get(self._finish, "stop")
        yield Finish("tool-calls" if calls and kind == "stop" else kind)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Chunk]:
        for name in _REASONING_FIELDS:
            if delta.get(name):
                yield from self._text("reasoning", delta[name])
                break
        if text := _content(delta.get("content") or ""):
            yield from self._text("text", text)
        for call in delta.get("tool_calls") or ():
            yield from self._call(call)

    def _text(self, kind: str, text: str) -> Iterator[Chunk]:
        if self._open is None or self._open[1] != kind:
            yield from self._close_text()
            self._open = (self._next_index(), kind, [])
            yield BlockStart(self._open[0], kind)
        index, _, pieces = self._open
        pieces.append(text)
        yield ReasoningDelta(index, text) if kind == "reasoning" else TextDelta(index, text)

    def _close_text(self) -> Iterator[Chunk]:
        if self._open is not None:
            index, kind, pieces = self._open
            self._open = None
            yield BlockEnd(index, {"type": kind, "text": "".join(pieces)})

    def _call(self, delta: Mapping[str, Any]) -> Iterator[Chunk]:
        place = delta.get("index", 0)
        function = delta.get("function") or {}
        call = self._calls.get(place)
        if call is not None and delta.get("id") and delta["id"] != call.id:
            # Some servers give every call the index 0; a new id is a new call.
            self._closed_calls.append(self._calls.pop(place))
            call = None
        if call is None:
            yield from self._close_text()
            index = self._next_index()
            call = _Call(index, delta.get("id") or f"call_{index}", function.get("name") or "")
            self._calls[place] = call
            yield BlockStart(call.index, "tool-call")
        elif function.get("name") and not call.name:
            call.name = function["name"]
        arguments = _arguments(function.get("arguments"))
        if not arguments and call.arguments:
            return
        call.arguments.append(arguments)
        yield ToolCallDelta(call.index, call.id, arguments, call.name or None)

    def _next_index(self) -> int:
        self._count += 1
        return self._count - 1


def _call_block(call: _Call) -> dict[str, Any]:
    arguments = "".join(call.arguments)
    return {"type": "tool-call", "id": call.id, "name": call.name, "arguments": arguments}


def _arguments(arguments: Any) -> str:
    """Return JSON text that some servers send as the object that it means."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else orjson.dumps(arguments).decode()


def _content(content: Any) -> str:
    """Return text that some servers send as a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _usage(usage: object) -> Usage | None:
    """Return the counts; DeepSeek counts cached tokens under a name of its own."""
    cached = count(usage, "prompt_tokens_details", "cached_tokens")
    return usage_of(
        usage,
        ("prompt_tokens", "completion_tokens"),
        count(usage, "total_tokens"),
        count(usage, "prompt_cache_hit_tokens") if cached is None else cached,
        count(usage, "prompt_tokens_details", "cache_write_tokens"),
        count(usage, "completion_tokens_details", "reasoning_tokens"),
    )
