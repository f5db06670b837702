"""A log of the earlier design, written as its note says: marked copies by surface replacement.

"For each node that carried one [the plugin] appends the seam's compaction/prune shadow price
followed by the marked copy"; the loop then "logs the fresh request/header every surface
replacement gets". The prices are those of its own meter, which counted the mark.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from tests.domain.kit import assistant, image, system, text, tool_result, user

PICTURE = image(7)
"""One attachment, attached six times."""

HEADER = {"config": {"provider": "scripted", "model": "m"}}
NEEDS_MORE = {"message": "too large", "code": "IMAGE_OFFLOAD_REQUIRED", "offloadImages": 3}


class EarlierLog:
    """Writes records like a host of the earlier design, marks included."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def add(self, type_: str, data: Any, **fields: Any) -> int:
        """Write one record and return its seq."""
        seq = len(self.records)
        time = 1_723_000_000_000 + seq
        self.records.append({"type": type_, "seq": seq, "time": time, "data": data, **fields})
        return seq

    def say(self, type_: str, data: Any) -> int:
        """Write a message at the end of the surface."""
        return self.add(type_, data, surfaceOp="append")

    def omit(self, node: int, indexes: Collection[int]) -> int:
        """Omit images of a node: its price, then its marked copy; return the copy's seq."""
        old = self.records[node]
        covered = {"start": node, "end": node}
        price = {
            "shadowedRange": covered,
            "shadowedSeqs": [node],
            "shadowedTokenCount": earlier_price(old["data"]),
        }
        self.add("compaction/prune", price)
        marker = {"op": "replace", "startSeq": node, "endSeq": node}
        data = marked_copy(old["data"], indexes)
        return self.add(old["type"], data, surfaceOp=marker, sourceEventSeqs=[node])

    def fail(self, turn: int) -> None:
        """Write the attempt that the route refused."""
        finish = {"type": "finish", "reason": {"kind": "error", "failure": NEEDS_MORE}}
        stream = [{"type": "chunk", "time": 1_723_000_000_000, "chunk": finish}]
        self.add("assistant/attempt", {"turn": turn, "step": 1, "stream": stream})

    def header(self, reason: str) -> None:
        """Write a request header."""
        self.add("request/header", {"header": HEADER, "reason": reason})


def earlier_price(data: Mapping[str, Any]) -> int:
    """Return what the earlier meter charged for a node: marks and all, by its JSON."""
    message = data.get("message", data)
    return len(json.dumps(message["content"], separators=(",", ":"))) // 4 + 8


def marked_copy(data: Mapping[str, Any], indexes: Collection[int]) -> dict[str, Any]:
    """Return event data whose images at `indexes` are marked, everything else as it was."""
    copy: dict[str, Any] = json.loads(json.dumps(data))
    content = copy.get("message", copy)["content"]
    blocks = content[0]["content"] if content[0]["type"] == "tool-result" else content
    images = [block for block in blocks if block["type"] == "image"]
    for index in indexes:
        images[index]["offloaded"] = True
    return copy


def earlier_log() -> list[dict[str, Any]]:
    """Return a log in which four of six equal images are omitted, in two decisions.

    Surface afterwards: 0 prompt, 15 user (three marked, three kept), 5 call, 17 result (one
    marked), 19 answer.
    """
    log = EarlierLog()
    log.say("system/message", system("s", text("be brief")))
    log.add("turn/start", {"turn": 1})
    log.add("step/start", {"turn": 1, "step": 1})
    words = log.say("user/message", user("u", text("which?"), *[PICTURE] * 6))
    log.header("initial")
    call = {"type": "tool-call", "id": "c", "name": "read", "arguments": "{}"}
    log.say("assistant/message", assistant("a", call))
    log.add("tool/call", {"turn": 1, "step": 1, "callId": "c", "name": "read", "arguments": "{}"})
    result = log.say("tool/result", tool_result("c", text("r" * 9000), PICTURE))
    log.add("step/end", {"turn": 1, "step": 1})
    log.add("step/start", {"turn": 1, "step": 2})
    log.fail(1)
    first = log.omit(words, (0, 1))
    log.header("series")
    second = log.omit(first, (2,))
    copy = log.omit(result, (0,))
    assert (second, copy) == (15, 17)
    log.header("series")
    log.say(
        "assistant/message",
        assistant("b", text("the blue one"), usage={"inputTokens": 9000, "outputTokens": 5}),
    )
    log.add("step/end", {"turn": 1, "step": 2})
    log.add("turn/end", {"turn": 1, "reason": {"kind": "completed"}})
    return log.records
