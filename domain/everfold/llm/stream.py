"""The exact timed stream of an answer, kept compactly (field reference, section 2).

Runs of deltas of one block become one record with the gaps between them; everything else is one
`chunk` record. Nothing is lost: unpacking the records gives the same chunks at the same times.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

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
from everfold.llm.failure import LlmFailure

Record = dict[str, Any]

_FINISHES: Mapping[str, FinishKind] = {kind: kind for kind in get_args(FinishKind)}
_USAGE_FIELDS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "reasoningTokens": "reasoning_tokens",
}


class StreamRecordError(ValueError):
    """A record of a stream is malformed; the message names it.

    Attributes:
        position: which record, from 0.
    """

    code = "stream-record"

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"stream record {position}: {reason}")
        self.position = position


@dataclass(frozen=True, slots=True)
class TimedChunk:
    """A chunk and when it arrived, in milliseconds since 1970 UTC."""

    time: int
    chunk: Chunk


def pack(stream: Iterable[TimedChunk]) -> list[Record]:
    """Return the records of a whole stream."""
    packer = Packer()
    for timed in stream:
        packer.add(timed)
    return packer.records


@dataclass(slots=True)
class Packer:
    """Packs a stream while it arrives; `records` is always complete.

    Attributes:
        records: what was packed so far; the last one may still grow.
    """

    records: list[Record] = field(default_factory=list)
    _run: tuple[Any, ...] | None = None
    _last_time: int = 0

    def add(self, timed: TimedChunk) -> None:
        """Pack the next chunk."""
        run = _run_of(timed.chunk)
        if run is None:
            self.records.append(
                {"type": "chunk", "time": timed.time, "chunk": chunk_to_json(timed.chunk)}
            )
        elif run == self._run:
            record = self.records[-1]
            record["dt"].append(timed.time - self._last_time)
            record[_texts_key(record)].append(_piece(timed.chunk))
        else:
            self.records.append(_new_run(timed))
        self._run, self._last_time = run, timed.time


def _run_of(chunk: Chunk) -> tuple[Any, ...] | None:
    """Return what the chunks of one run have in common, None for a chunk that stands alone."""
    match chunk:
        case TextDelta(index=index):
            return ("text-chunks", index)
        case ReasoningDelta(index=index):
            return ("reasoning-chunks", index)
        case ToolCallDelta(index=index, id=id_, name=name):
            return ("tool-call-chunks", index, id_, name)
        case _:
            return None


def _piece(chunk: Chunk) -> str:
    return chunk.arguments if isinstance(chunk, ToolCallDelta) else getattr(chunk, "text", "")


def _texts_key(record: Record) -> str:
    return "args" if record["type"] == "tool-call-chunks" else "texts"


def _new_run(timed: TimedChunk) -> Record:
    chunk = timed.chunk
    match chunk:
        case ToolCallDelta():
            named = {} if chunk.name is None else {"name": chunk.name}
            return {
                "type": "tool-call-chunks",
                "time0": timed.time,
                "index": chunk.index,
                "dt": [],
                "id": chunk.id,
                **named,
                "args": [chunk.arguments],
            }
        case TextDelta() | ReasoningDelta():
            kind = "text-chunks" if isinstance(chunk, TextDelta) else "reasoning-chunks"
            base = {"type": kind, "time0": timed.time, "index": chunk.index}
            return {**base, "dt": [], "texts": [chunk.text]}
        case _:
            raise AssertionError(f"{chunk!r} starts no run")


def unpack(records: Sequence[Mapping[str, Any]]) -> list[TimedChunk]:
    """Return the timed chunks that records hold.

    Raises:
        StreamRecordError: a record is malformed.
    """
    return [timed for position, record in enumerate(records) for timed in _unpack(record, position)]


def _unpack(record: object, position: int) -> Iterator[TimedChunk]:
    if not isinstance(record, Mapping):
        raise StreamRecordError(position, f"it is {type(record).__name__}, not an object")
    kind = record.get("type")
    if kind == "chunk":
        yield TimedChunk(
            _whole(record, "time", position), chunk_from_json(record.get("chunk"), position)
        )
        return
    make = _RUNS.get(kind) if isinstance(kind, str) else None
    if make is None:
        raise StreamRecordError(position, f"type {kind!r} is not one of a stream's")
    yield from _unpack_run(record, position, make)


def _unpack_run(
    record: Mapping[str, Any], position: int, make: "_MakeDelta"
) -> Iterator[TimedChunk]:
    time = _whole(record, "time0", position)
    _whole(record, "index", position)
    key = "args" if record["type"] == "tool-call-chunks" else "texts"
    texts, gaps = record.get(key), record.get("dt")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise StreamRecordError(position, f"{key} is not a list of texts")
    if not isinstance(gaps, list) or not all(type(gap) is int for gap in gaps):
        raise StreamRecordError(position, "dt is not a list of whole numbers")
    if len(gaps) != max(len(texts) - 1, 0):
        raise StreamRecordError(position, f"{len(texts)} {key} do not go with {len(gaps)} gaps")
    for text, gap in zip(texts, [0, *gaps], strict=False):
        time += gap
        yield TimedChunk(time, make(record, text, position))


_MakeDelta = Callable[[Mapping[str, Any], str, int], Chunk]


def _tool_delta(record: Mapping[str, Any], text: str, position: int) -> Chunk:
    name = record.get("name")
    if name is not None and not isinstance(name, str):
        raise StreamRecordError(position, f"name is {type(name).__name__}, not text")
    return ToolCallDelta(record["index"], _text(record, "id", position), text, name)


_RUNS: dict[str, _MakeDelta] = {
    "text-chunks": lambda record, text, _: TextDelta(record["index"], text),
    "reasoning-chunks": lambda record, text, _: ReasoningDelta(record["index"], text),
    "tool-call-chunks": _tool_delta,
}


def chunk_to_json(chunk: Chunk) -> dict[str, Any]:
    """Return a chunk with the wire's field names."""
    match chunk:
        case BlockStart(index, block_type):
            return {"type": "block-start", "index": index, "blockType": block_type}
        case TextDelta(index, text):
            return {"type": "text-delta", "index": index, "text": text}
        case ReasoningDelta(index, text):
            return {"type": "reasoning-delta", "index": index, "text": text}
        case ToolCallDelta(index, id_, arguments, name):
            named = {} if name is None else {"name": name}
            base = {"type": "tool-call-delta", "index": index, "id": id_, **named}
            return {**base, "argumentsDelta": arguments}
        case BlockEnd(index, block):
            return {"type": "block-end", "index": index, "block": dict(block)}
        case Usage():
            return {"type": "usage", "usage": chunk.to_json()}
        case Finish(kind, failure, replay_state):
            reason: dict[str, Any] = {"kind": kind}
            if failure is not None:
                reason["failure"] = failure.to_json()
            replay = {} if replay_state is None else {"replayState": dict(replay_state)}
            return {"type": "finish", "reason": reason, **replay}


def chunk_from_json(data: object, position: int = 0) -> Chunk:
    """Return the chunk that a JSON object holds.

    Raises:
        StreamRecordError: it is none; `position` says of which record.
    """
    kind = data.get("type") if isinstance(data, Mapping) else None
    read = _CHUNKS.get(kind) if isinstance(kind, str) else None
    if not isinstance(data, Mapping) or read is None:
        raise StreamRecordError(position, f"chunk type {kind!r} is not known")
    return read(data, position)


def _read_block_end(data: Mapping[str, Any], position: int) -> Chunk:
    block = data.get("block")
    if not isinstance(block, Mapping):
        raise StreamRecordError(position, "block is not an object")
    return BlockEnd(_whole(data, "index", position), block)


def _read_tool_delta(data: Mapping[str, Any], position: int) -> Chunk:
    return _tool_delta(
        {**data, "index": _whole(data, "index", position)},
        _text(data, "argumentsDelta", position),
        position,
    )


def _read_usage(data: Mapping[str, Any], position: int) -> Chunk:
    usage = usage_from_json(data.get("usage"))
    if usage is None:
        raise StreamRecordError(position, "usage is not an object with the two token counts")
    return usage


def _read_finish(data: Mapping[str, Any], position: int) -> Chunk:
    reason = data.get("reason")
    kind = reason.get("kind") if isinstance(reason, Mapping) else None
    known = _FINISHES.get(kind) if isinstance(kind, str) else None
    if not isinstance(reason, Mapping) or known is None:
        raise StreamRecordError(position, f"finish reason {kind!r} is not known")
    failure, replay = reason.get("failure"), data.get("replayState")
    return Finish(
        known,
        LlmFailure.from_json(failure) if isinstance(failure, Mapping) else None,
        replay if isinstance(replay, Mapping) else None,
    )


_CHUNKS: dict[str, Callable[[Mapping[str, Any], int], Chunk]] = {
    "block-start": lambda data, at: BlockStart(
        _whole(data, "index", at), _text(data, "blockType", at)
    ),
    "text-delta": lambda data, at: TextDelta(_whole(data, "index", at), _text(data, "text", at)),
    "reasoning-delta": lambda data, at: ReasoningDelta(
        _whole(data, "index", at), _text(data, "text", at)
    ),
    "tool-call-delta": _read_tool_delta,
    "block-end": _read_block_end,
    "usage": _read_usage,
    "finish": _read_finish,
}


def usage_from_json(data: object) -> Usage | None:
    """Return the token counts that a log holds, None if the two required ones are not there."""
    if not isinstance(data, Mapping):
        return None
    counts = {
        ours: data[theirs]
        for theirs, ours in _USAGE_FIELDS.items()
        if type(data.get(theirs)) is int
    }
    if "input_tokens" not in counts or "output_tokens" not in counts:
        return None
    return Usage(**counts)


def _whole(data: Mapping[str, Any], name: str, position: int) -> int:
    value = data.get(name)
    if type(value) is not int:
        raise StreamRecordError(position, f"{name} {value!r} is not a whole number")
    return value


def _text(data: Mapping[str, Any], name: str, position: int) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise StreamRecordError(position, f"{name} {value!r} is not text")
    return value
