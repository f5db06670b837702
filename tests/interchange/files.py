"""Session files as the reference system writes them, built without the code under test."""

import json
from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise
from typing import Any

import zstandard

from everfold.session.frozen import Json

TIME_MS = 1_723_000_000_000
HEADER: dict[str, Json] = {
    "type": "session",
    "version": 3,
    "id": "session-1",
    "createdAt": TIME_MS,
    "cwd": "/srv/quay",
    "isSeeded": False,
    "delegationDepth": 0,
}
IMAGE = {
    "type": "image",
    "attachment": {
        "attachmentId": "sha256:" + "ab" * 32,
        "mediaType": "image/png",
        "bytes": 1407,
        "width": 331,
        "height": 211,
    },
}


def line(value: Json) -> bytes:
    """Return one line of a file, newline included."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def file_of(records: Iterable[Json], header: Mapping[str, Json] = HEADER) -> bytes:
    """Return the bytes of a plain file; sources must be range-coded already."""
    return b"".join((line(dict(header)), *map(line, records)))


def frames(content: bytes, *, batch: int = 7) -> list[bytes]:
    """Return a file as Zstandard frames: the header, then batches of lines."""
    first, *rest = content.splitlines(keepends=True)
    batches = [first, *(b"".join(rest[at : at + batch]) for at in range(0, len(rest), batch))]
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return [compressor.compress(each) for each in batches]


def compressed(content: bytes) -> bytes:
    """Return the same file compressed, as the reference system does it."""
    return b"".join(frames(content))


def normal(content: bytes) -> list[str]:
    """Return the lines of a file in one key order; the spelling of every number is kept."""
    lines = content.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
    values = [json.loads(each, parse_int=_spelling, parse_float=_spelling) for each in lines]
    return [json.dumps(value, sort_keys=True) for value in values]


def _spelling(text: str) -> dict[str, str]:
    return {"number": text}


class Log:
    """Builds the records of one log, seq by seq."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    @property
    def next_seq(self) -> int:
        return len(self.records)

    def add(self, type_: str, data: Json, **fields: Json) -> int:
        """Add one event and return its seq."""
        seq = self.next_seq
        record = {"type": type_, "seq": seq, "time": TIME_MS + 10 * seq, "data": data, **fields}
        self.records.append(record)
        return seq

    def open_turn(self, turn: int) -> None:
        self.add("turn/start", {"turn": turn})
        self.add("step/start", {"turn": turn, "step": 1})

    def close_turn(self, turn: int, reason: str = "completed") -> None:
        self.add("step/end", {"turn": turn, "step": 1})
        self.add("turn/end", {"turn": turn, "reason": {"kind": reason}})

    def system(self, turn: int, text: str = "be brief") -> int:
        message = {
            "id": f"s-{self.next_seq}",
            "role": "system",
            "content": [{"type": "text", "text": text}],
            "source": {"kind": "plugin", "plugin": "prompt-maker"},
        }
        data = {"turn": turn, "step": 1, "message": message}
        return self.add("system/message", data, surfaceOp="append")

    def user(self, *content: Json, **fields: Json) -> int:
        message = {
            "id": f"u-{self.next_seq}",
            "role": "user",
            "content": list(content) or [{"type": "text", "text": "count the boats"}],
            "source": {"kind": "user"},
        }
        return self.add("user/message", message, **{"surfaceOp": "append", **fields})

    def header(self, reason: str = "initial") -> int:
        config = {"provider": "p", "model": "m", "temperature": 0.7}
        return self.add("request/header", {"header": {"config": config}, "reason": reason})

    def assistant(self, turn: int, *content: Json) -> int:
        blocks = list(content) or [{"type": "text", "text": "seven boats"}]
        message = {
            "id": f"a-{self.next_seq}",
            "role": "assistant",
            "content": blocks,
            "source": {"kind": "model", "provider": "p", "model": "m"},
        }
        stream = [
            {
                "type": "text-chunks",
                "time0": TIME_MS,
                "index": 0,
                "dt": [3, -1],
                "texts": ["a", "b", "c"],
            },
            {
                "type": "chunk",
                "time": TIME_MS,
                "chunk": {"type": "finish", "reason": {"kind": "stop"}},
            },
        ]
        usage = {"inputTokens": 812, "outputTokens": 40}
        data = {"turn": turn, "step": 1, "message": message, "stream": stream, "usage": usage}
        return self.add("assistant/message", data, surfaceOp="append")

    def tool_call(self, turn: int, call_id: str) -> int:
        call = {"type": "tool-call", "id": call_id, "name": "read", "arguments": '{"path":"a"}'}
        self.assistant(turn, call)
        data = {
            "turn": turn,
            "step": 1,
            "callId": call_id,
            "name": "read",
            "arguments": '{"path":"a"}',
        }
        return self.add("tool/call", data)

    def result(self, turn: int, call_id: str, text: str, **fields: Json) -> int:
        block = {
            "type": "tool-result",
            "toolCallId": call_id,
            "content": [{"type": "text", "text": text}, IMAGE],
        }
        message = {
            "id": f"t-{call_id}",
            "role": "user",
            "content": [block],
            "source": {"kind": "tool", "callId": call_id},
        }
        data = {"turn": turn, "step": 1, "message": message, "meta": {"seconds": 0.25}}
        return self.add("tool/result", data, **{"surfaceOp": "append", **fields})


def coded(seqs: Json) -> Json:
    """Return sources as a file holds them (R337), reckoned in another way than by the product."""
    if not isinstance(seqs, list) or any(type(seq) is not int for seq in seqs):
        return seqs
    if any(right <= left for left, right in pairwise(seqs)):
        return seqs
    runs = [list(run) for _, run in groupby(enumerate(seqs), key=lambda pair: pair[1] - pair[0])]
    values = [[seq for _, seq in run] for run in runs]
    return [item for run in values for item in ([[run[0], run[-1]]] if len(run) >= 3 else run)]
