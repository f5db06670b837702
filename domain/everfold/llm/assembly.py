"""An answer while it arrives: its exact stream, and the message content that it adds up to."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
from everfold.llm.stream import Packer, Record, TimedChunk, usage_from_json
from everfold.llm.wellformed import Repair, ends_in_half, mended, well_formed

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a stream adds up to.

    Attributes:
        content: the content blocks in the order of the answer; none is empty text.
        usage: the last token counts that were reported.
        finish: how it ended; None if the stream broke off.
        replay_state: what the provider wants back, fitted to `content`.
        repairs: what was mended so that the log can hold it.
    """

    content: tuple[Block, ...]
    usage: Usage | None
    finish: Finish | None
    replay_state: Mapping[str, Any] | None
    repairs: tuple[Repair, ...]

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def tool_calls(self) -> tuple[Block, ...]:
        """The tool-call blocks of the answer, in order."""
        return tuple(block for block in self.content if block.get("type") == "tool-call")


@dataclass(slots=True)
class _Part:
    """One content block so far."""

    kind: str
    texts: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    whole: Block | None = None

    @property
    def is_complete(self) -> bool:
        return self.whole is not None

    def counts(self, *, is_whole: bool) -> bool:
        if self.is_complete or self.kind in ("text", "reasoning"):
            return True
        return is_whole and self.kind == "tool-call"

    def block(self) -> Block:
        if self.whole is not None:
            return self.whole
        text = "".join(self.texts)
        if self.kind == "tool-call":
            return {"type": "tool-call", "id": self.id, "name": self.name, "arguments": text}
        return {"type": self.kind, "text": text}


class Assembler:
    """Takes the chunks of one answer as they come; mends what is not valid Unicode at this edge.

    A character whose halves arrive in two deltas is put into the second one.

    Attributes:
        size: characters taken so far, to bound an answer.
    """

    def __init__(self) -> None:
        self._packer = Packer()
        self._parts: dict[int, _Part] = {}
        self._halves: dict[int, Chunk] = {}
        self._repairs: list[Repair] = []
        self._usage: Usage | None = None
        self._finish: Finish | None = None
        self.size = 0

    @property
    def records(self) -> list[Record]:
        """The stream so far, compact."""
        return self._packer.records

    @property
    def finish(self) -> Finish | None:
        """The finish, None as long as there was none."""
        return self._finish

    def add(self, chunk: Chunk, time: int) -> tuple[Chunk, ...]:
        """Take the next chunk, and return what was recorded for it, mended.

        Args:
            time: when it arrived, in milliseconds since 1970 UTC.
        """
        recorded = (*self._flushed(chunk), self._mended(chunk))
        for clean in recorded:
            self._packer.add(TimedChunk(time, clean))
            self._take(clean)
        return recorded

    def _flushed(self, chunk: Chunk) -> tuple[Chunk, ...]:
        """Return deltas for halves of characters whose other half can no longer come."""
        if isinstance(chunk, (BlockEnd, BlockStart)):
            gone = [chunk.index]
        else:
            gone = list(self._halves) if isinstance(chunk, Finish) else []
        halves = [self._halves.pop(index) for index in gone if index in self._halves]
        return tuple(self._clean(half) for half in halves)

    def _mended(self, chunk: Chunk) -> Chunk:
        match chunk:
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                return self._delta(chunk)
            case BlockEnd(index, block):
                clean, repairs = mended(block, f"content[{index}]")
                self._repairs += repairs
                return BlockEnd(index, clean)
            case Finish(_, failure, replay):
                clean, repairs = mended(replay, "replayState")
                self._repairs += repairs
                failure = None if failure is None else mended_failure(failure)
                return replace(chunk, failure=failure, replay_state=clean)
            case Usage():
                return self._usage_of(chunk)
            case _:
                return chunk

    def _usage_of(self, chunk: Usage) -> Usage:
        """Return counts that the log can hold; others count as none."""
        clean, repairs = mended(chunk.to_json(), "usage")
        self._repairs += repairs
        return usage_from_json(clean) or Usage(0, 0)

    def _delta(self, chunk: TextDelta | ReasoningDelta | ToolCallDelta) -> Chunk:
        text = _text(chunk)
        half = self._halves.pop(chunk.index, None)
        if half is not None and type(half) is type(chunk):
            text = _text(half) + text
        if ends_in_half(text):
            self._halves[chunk.index] = _with_text(chunk, text[-1])
            text = text[:-1]
        return self._clean(_with_text(chunk, text))

    def _clean(self, chunk: Chunk) -> Chunk:
        """Return a delta whose texts are valid Unicode."""
        text, count = well_formed(_text(chunk))
        if isinstance(chunk, ToolCallDelta):
            id_, bad_id = well_formed(chunk.id)
            name, bad_name = (None, 0) if chunk.name is None else well_formed(chunk.name)
            count += bad_id + bad_name
            chunk = replace(chunk, id=id_, name=name)
        if count and isinstance(chunk, (TextDelta, ReasoningDelta, ToolCallDelta)):
            self._repairs.append(Repair(f"content[{chunk.index}]", f"{count} lone surrogate(s)"))
        return _with_text(chunk, text)

    def _take(self, chunk: Chunk) -> None:
        match chunk:
            case BlockStart(index, kind):
                self._parts.setdefault(index, _Part(kind))
            case TextDelta(index, text):
                self._grow(index, "text", text)
            case ReasoningDelta(index, text):
                self._grow(index, "reasoning", text)
            case ToolCallDelta(index, id_, arguments, name):
                part = self._grow(index, "tool-call", arguments)
                part.id, part.name = id_ or part.id, name or part.name
            case BlockEnd(index, block):
                part = self._parts.setdefault(index, _Part(str(block.get("type"))))
                part.whole = dict(block)
            case Usage():
                self._usage = chunk
            case Finish():
                self._finish = chunk

    def _grow(self, index: int, kind: str, text: str) -> _Part:
        part = self._parts.setdefault(index, _Part(kind))
        part.texts.append(text)
        self.size += len(text)
        return part

    def answer(self, *, is_whole: bool = True) -> Answer:
        """Return what has arrived as an answer.

        Args:
            is_whole: whether the stream ran to its end; if not, tool calls that were not
                completed are left out, since nobody may run half a call.
        """
        kept = [
            (place, part.block())
            for place, (_, part) in enumerate(sorted(self._parts.items()))
            if part.counts(is_whole=is_whole)
        ]
        kept = [(place, block) for place, block in kept if not _is_empty(block)]
        content, repairs = _with_call_ids([block for _, block in kept])
        replay = self._replay([place for place, _ in kept])
        return Answer(tuple(content), self._usage, self._finish, replay, (*self._repairs, *repairs))

    def _replay(self, places: list[int]) -> Mapping[str, Any] | None:
        """Return the replay state with its blocks beside the content blocks that are kept."""
        state = self._finish.replay_state if self._finish is not None else None
        blocks = state.get("blocks") if state is not None else None
        if state is None or not isinstance(blocks, list) or len(blocks) != len(self._parts):
            return state
        return {**state, "blocks": [blocks[place] for place in places]}


def mended_failure(failure: LlmFailure) -> LlmFailure:
    """Return a failure that the log can hold."""
    clean = LlmFailure.from_json(mended(failure.to_json())[0])
    return replace(clean, at_fault=failure.at_fault, suspects=failure.suspects)


def _text(chunk: Chunk) -> str:
    return chunk.arguments if isinstance(chunk, ToolCallDelta) else getattr(chunk, "text", "")


def _with_text(chunk: Chunk, text: str) -> Chunk:
    match chunk:
        case ToolCallDelta():
            return replace(chunk, arguments=text)
        case TextDelta() | ReasoningDelta():
            return replace(chunk, text=text)
        case _:
            return chunk


def _is_empty(block: Block) -> bool:
    """Tell whether a block says nothing; providers refuse empty text for ever."""
    return block.get("type") in ("text", "reasoning") and block.get("text") in ("", None)


def _with_call_ids(content: list[Block]) -> tuple[list[Block], list[Repair]]:
    """Return content whose tool calls have ids, each its own within the message."""
    seen: set[str] = set()
    repairs: list[Repair] = []
    result = []
    for place, block in enumerate(content):
        if block.get("type") == "tool-call":
            block = _whole_call(block)
            id_ = _free_id(block["id"], place, seen)
            if id_ != block["id"]:
                repairs.append(Repair(f"content[{place}].id", f"id {block['id']!r} made unique"))
                block = {**block, "id": id_}
            seen.add(id_)
        result.append(block)
    return result, repairs


def _whole_call(block: Block) -> Block:
    """Return a tool-call block whose id, name and arguments are texts."""
    names = ("id", "name", "arguments")
    texts = {name: block[name] if isinstance(block.get(name), str) else "" for name in names}
    return {**block, **texts}


def _free_id(id_: str, place: int, seen: set[str]) -> str:
    wanted = id_ or f"call-{place}"
    free, number = wanted, 1
    while free in seen:
        number += 1
        free = f"{wanted}-{number}"
    return free
