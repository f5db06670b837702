"""Reads Anthropic's events and turns them into chunks."""

from collections.abc import Iterable, Iterator, Mapping
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
from everfold.routes.anthropic_replay import HIDDEN, redacted_entry, replay_state, thinking_entry
from everfold.routes.failures import scrubbed
from everfold.routes.sending import AnswerRefusedError, Event, empty
from everfold.routes.token_counts import count

_CUT = ("max_tokens", "model_context_window_exceeded")
_TYPES = {"tool_use": "tool-call", "thinking": "reasoning", "redacted_thinking": "reasoning"}
_COUNTS = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
)


@dataclass(slots=True)
class _Block:
    """A content block while it arrives; `opened` is how it was announced."""

    kind: str
    opened: Mapping[str, Any]
    texts: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    is_complete: bool = False

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def says_something(self) -> bool:
        return self.kind not in ("text", "thinking") or bool(self.text) or bool(self.entry())

    def entry(self) -> dict[str, Any] | None:
        """Return what the provider wants back of it; nothing of a block that was cut."""
        if not self.is_complete:
            return None
        if self.kind == "thinking":
            return thinking_entry(self.text, "".join(self.signature))
        if self.kind == "redacted_thinking":
            return redacted_entry(_text(self.opened, "data"))
        return None

    def whole(self) -> dict[str, Any]:
        """Return the content block of the message."""
        match self.kind:
            case "text":
                return {"type": "text", "text": self.text}
            case "thinking":
                return {"type": "reasoning", "text": self.text or (HIDDEN if self.entry() else "")}
            case "redacted_thinking":
                return {"type": "reasoning", "text": HIDDEN}
            case "tool_use":
                id_, name = _text(self.opened, "id"), _text(self.opened, "name")
                arguments = self.text or _json(self.opened.get("input"))
                return {"type": "tool-call", "id": id_, "name": name, "arguments": arguments}
            case kind:
                return {**self.opened, "type": f"anthropic.{kind}"}


class MessagesReader:
    """A `Reader` of one answer."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._counts: dict[str, int] = {}
        self._reasoning_tokens: int | None = None
        self._stop: Mapping[str, Any] = {}
        self._is_over = False

    def feed(self, event: Event) -> Iterable[Chunk]:
        """Return what an event adds; events of unknown types add nothing.

        Raises:
            AnswerRefusedError: the event is an error.
        """
        match event["type"]:
            case "message_start":
                self._count(event["message"].get("usage"))
            case "content_block_start":
                return self._opened(_whole(event, "index"), event["content_block"])
            case "content_block_delta":
                return self._grown(_whole(event, "index"), event["delta"])
            case "content_block_stop":
                return self._closed(_whole(event, "index"))
            case "message_delta":
                self._stop = {**self._stop, **event["delta"]}
                self._count(event.get("usage"))
            case "message_stop":
                self._is_over = True
            case "error":
                raise AnswerRefusedError(event)
        return ()

    def end(self) -> Iterable[Chunk]:
        """Return usage and finish.

        Raises:
            LlmError: TRANSPORT for an answer that was cut off, EMPTY_RESPONSE for one with nothing
                in it, CONTENT_FILTER for a refusal.
        """
        reason = self._stop.get("stop_reason")
        if reason == "refusal":
            raise LlmError(_refused(self._stop))
        if not self._is_over and reason is None:
            if not self._blocks and not self._counts:
                raise LlmError(empty())
            text = "the answer broke off before its end"
            raise LlmError(LlmFailure(text, FailureCode.TRANSPORT))
        if not any(block.says_something for block in self._blocks.values()):
            raise LlmError(empty())
        in_order = [self._blocks[index] for index in sorted(self._blocks)]
        state = replay_state([block.entry() for block in in_order])
        finish = Finish(self._finish(reason), replay_state=state)
        return (self._usage(), finish) if self._counts else (finish,)

    def _finish(self, reason: object) -> FinishKind:
        """Return why it ended; the content decides about calls, since gateways confuse the words."""
        if reason in _CUT:
            return "max-tokens"
        calls = any(block.kind == "tool_use" for block in self._blocks.values())
        return "tool-calls" if calls else "stop"

    def _count(self, usage: object) -> None:
        """Take note of counts; they are totals, later ones replace earlier ones."""
        found = {name: count(usage, name) for name in _COUNTS}
        self._counts |= {name: number for name, number in found.items() if number is not None}
        thought = count(usage, "output_tokens_details", "thinking_tokens")
        self._reasoning_tokens = self._reasoning_tokens if thought is None else thought

    def _usage(self) -> Usage:
        read = self._counts.get("cache_read_input_tokens")
        written = self._counts.get("cache_creation_input_tokens")
        taken = self._counts.get("input_tokens", 0) + (read or 0) + (written or 0)
        given = self._counts.get("output_tokens", 0)
        return Usage(taken, given, taken + given, read, written, self._reasoning_tokens)

    def _opened(self, index: int, opened: Mapping[str, Any]) -> Iterator[Chunk]:
        kind = _text(opened, "type")
        if index in self._blocks:
            raise ValueError(f"block {index} begins twice")
        block = self._blocks[index] = _Block(kind, opened)
        yield BlockStart(index, _TYPES.get(kind, kind if kind == "text" else f"anthropic.{kind}"))
        if kind == "thinking":
            block.signature.append(_text(opened, "signature", ""))
        first = {"text": "text", "thinking": "thinking"}.get(kind)
        if first is not None and (text := _text(opened, first, "")):
            block.texts.append(text)
            yield TextDelta(index, text) if kind == "text" else ReasoningDelta(index, text)

    def _grown(self, index: int, delta: Mapping[str, Any]) -> Iterator[Chunk]:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                if text := _text(delta, "text"):
                    block.texts.append(text)
                    yield TextDelta(index, text)
            case "thinking_delta":
                if text := _text(delta, "thinking"):
                    block.texts.append(text)
                    yield ReasoningDelta(index, text)
            case "signature_delta":
                block.signature.append(_text(delta, "signature"))
            case "input_json_delta":
                if text := _text(delta, "partial_json"):
                    block.texts.append(text)
                    id_, name = _text(block.opened, "id"), _text(block.opened, "name")
                    yield ToolCallDelta(index, id_, text, name)

    def _closed(self, index: int) -> Iterator[Chunk]:
        block = self._blocks[index]
        block.is_complete = True
        yield BlockEnd(index, block.whole())


def _refused(stop: Mapping[str, Any]) -> LlmFailure:
    details = stop.get("stop_details")
    said = details.get("explanation") if isinstance(details, Mapping) else None
    why = f": {scrubbed(said)}" if isinstance(said, str) and said else ""
    text = f"the model refused to answer{why}; say it differently, or use another model"
    return LlmFailure(text, FailureCode.CONTENT_FILTER)


def _json(value: object) -> str:
    return orjson.dumps(value if value is not None else {}).decode()


def _whole(data: Mapping[str, Any], name: str) -> int:
    value = data[name]
    if type(value) is not int:
        raise TypeError(f"{name} {value!r} is not a whole number")
    return value


def _text(data: Mapping[str, Any], name: str, otherwise: str | None = None) -> str:
    value = data[name] if otherwise is None else data.get(name, otherwise)
    if not isinstance(value, str):
        raise TypeError(f"{name} {value!r} is not text")
    return value
