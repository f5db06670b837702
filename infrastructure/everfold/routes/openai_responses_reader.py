"""Reads the stream of the Responses API."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
from everfold.routes.sending import AnswerRefusedError, Event, empty, malformed
from everfold.routes.token_counts import count, usage_of

HIDDEN = "[Reasoning that the provider does not show.]"
"""Stands for reasoning of which only the encrypted form came; it is never sent back."""

Kind = Literal["text", "reasoning", "tool-call"]
_KINDS: Mapping[str, Kind] = {
    "message": "text",
    "reasoning": "reasoning",
    "function_call": "tool-call",
}
_TEXT_DELTAS = frozenset(("response.output_text.delta", "response.refusal.delta"))
_REASONING_DELTAS = frozenset(
    ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
)
_KEPT = ("type", "id", "summary", "encrypted_content")


@dataclass
class _Item:
    index: int
    kind: Kind
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    is_open: bool = False

    def block(self) -> dict[str, Any]:
        text = "".join(self.pieces)
        if self.kind == "tool-call":
            return {"type": "tool-call", "id": self.call_id, "name": self.name, "arguments": text}
        return {"type": self.kind, "text": text}


class ResponsesReader:
    """A `Reader` of one answer; encrypted reasoning becomes the replay state of the finish."""

    def __init__(self) -> None:
        self._items: dict[int, _Item] = {}
        self._states: dict[int, dict[str, Any]] = {}
        self._response: Mapping[str, Any] | None = None

    def feed(self, event: Event) -> Iterator[Chunk]:
        """As `Reader.feed`."""
        match event["type"]:
            case "response.output_item.added":
                yield from self._added(event["output_index"], event["item"])
            case "response.output_item.done":
                yield from self._done(event["output_index"], event["item"])
            case "response.reasoning_summary_part.added" if event.get("summary_index"):
                yield from self._delta(event["output_index"], "\n\n")
            case "response.completed" | "response.incomplete":
                self._response = event["response"]
            case "response.failed":
                raise AnswerRefusedError(event["response"].get("error") or event["response"])
            case "error":
                raise AnswerRefusedError(event.get("error") or event)
            case kind if kind in _TEXT_DELTAS or kind in _REASONING_DELTAS:
                yield from self._delta(event["output_index"], event["delta"])
            case "response.function_call_arguments.delta":
                yield from self._delta(event["output_index"], event["delta"])

    def end(self) -> Iterator[Chunk]:
        """As `Reader.end`."""
        response = self._response
        if response is None:
            raise LlmError(malformed("it ended without a reason") if self._items else empty())
        reason = (response.get("incomplete_details") or {}).get("reason")
        if reason == "content_filter":
            text = "the provider's content filter ended the answer"
            raise LlmError(LlmFailure(text, FailureCode.CONTENT_FILTER))
        if not self._items:
            raise LlmError(empty())
        for item in self._items.values():
            if item.is_open:
                yield BlockEnd(item.index, item.block())
        usage = _usage(response.get("usage"))
        if usage is not None:
            yield usage
        calls = any(item.kind == "tool-call" for item in self._items.values())
        kind: FinishKind = "max-tokens" if reason else "tool-calls" if calls else "stop"
        yield Finish(kind, replay_state=self._replay_state(response))

    def _added(self, place: int, item: Mapping[str, Any]) -> Iterator[Chunk]:
        kind = _KINDS.get(item["type"])
        if kind is None or (kind == "text" and place not in self._items):
            return
        yield from self._opened(place, kind, item)

    def _opened(self, place: int, kind: Kind, item: Mapping[str, Any]) -> Iterator[Chunk]:
        new = _Item(len(self._items), kind, item.get("call_id", ""), item.get("name", ""))
        new.is_open = True
        self._items[place] = new
        yield BlockStart(new.index, kind)
        if kind == "tool-call":
            yield ToolCallDelta(new.index, new.call_id, item.get("arguments") or "", new.name)
            new.pieces.append(item.get("arguments") or "")

    def _delta(self, place: int, piece: str) -> Iterator[Chunk]:
        if not piece:
            return
        if place not in self._items:
            # A message begins with its first text, so that one without any is no block.
            yield from self._opened(place, "text", {})
        item = self._items[place]
        item.pieces.append(piece)
        match item.kind:
            case "text":
                yield TextDelta(item.index, piece)
            case "reasoning":
                yield ReasoningDelta(item.index, piece)
            case "tool-call":
                yield ToolCallDelta(item.index, item.call_id, piece, item.name)

    def _done(self, place: int, item: Mapping[str, Any]) -> Iterator[Chunk]:
        found = self._items.get(place)
        if found is None or not found.is_open:
            return
        found.is_open = False
        if found.kind == "reasoning" and item.get("encrypted_content"):
            self._states[found.index] = {key: item[key] for key in _KEPT if key in item}
            if not found.pieces:
                # A block without text is not kept, and its state would go with it.
                yield from self._delta(place, HIDDEN)
        yield BlockEnd(found.index, found.block())

    def _replay_state(self, response: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not self._states:
            return None
        blocks = [self._states.get(index) for index in range(len(self._items))]
        return {"response": {"id": response.get("id")}, "blocks": blocks}


def _usage(usage: object) -> Usage | None:
    return usage_of(
        usage,
        ("input_tokens", "output_tokens"),
        count(usage, "total_tokens"),
        count(usage, "input_tokens_details", "cached_tokens"),
        reasoning=count(usage, "output_tokens_details", "reasoning_tokens"),
    )
