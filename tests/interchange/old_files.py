"""Session files of format versions 0 to 2 as the field reference describes them, built without the code under test."""

from typing import Any

from everfold.session.frozen import Json
from tests.interchange.files import TIME_MS, line

Records = list[dict[str, Any]]
DELTA_RUNS = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}


class Old:
    """Builds one file, line by line; seqs are those of its version."""

    def __init__(self, version: int, **header: Json) -> None:
        seeded = {"isSeeded": False} if version == 2 else {}
        fields = {"type": "session", "version": version, "id": "old-1", "createdAt": TIME_MS}
        self.lines: list[Json] = [
            {**fields, "cwd": "/srv", "delegationDepth": 0, **seeded, **header}
        ]
        self.next_seq = 0

    def add(self, type_: str, data: Json, **fields: Json) -> int:
        """Add an event and return its seq."""
        seq = self.next_seq
        self.lines.append(
            {"type": type_, "seq": seq, "time": TIME_MS + 10 * seq, "data": data, **fields}
        )
        self.next_seq += 1
        return seq

    def run(self, kind: str, *texts: str, step: int = 1, **more: Json) -> int:
        """Add a packed line of deltas and return the seq of the first."""
        seq = self.next_seq
        data = {"turn": 1, "step": step, "index": 0, "dt": [3] * (len(texts) - 1), **more}
        data[DELTA_RUNS[kind]] = list(texts)
        self.lines.append({"type": kind, "seq0": seq, "time0": TIME_MS + 10 * seq, "data": data})
        self.next_seq += len(texts)
        return seq

    def chunk(self, chunk: Json, step: int = 1) -> int:
        """Add one delta as an event of its own."""
        return self.add("assistant/chunk", {"turn": 1, "step": step, "chunk": chunk})

    def finish(self, kind: str = "stop", step: int = 1, **reason: Json) -> int:
        """Add the delta that ends a stream."""
        return self.chunk({"type": "finish", "reason": {"kind": kind, **reason}}, step)

    def user(self, name: str, *content: Json, type_: str = "user/message", **fields: Json) -> int:
        """Add a message of a person."""
        message = {
            "id": name,
            "role": "user",
            "content": list(content) or [{"type": "text", "text": name}],
            "source": {"kind": "user"},
        }
        return self.add(type_, message, **{"surfaceOp": "append", **fields})

    def header(self, system: Json = "be brief", **more: Json) -> int:
        """Add a request header with its prompt."""
        header: dict[str, Any] = {"config": {"provider": "p", "model": "m"}, **more}
        if system is not None:
            header["system"] = system
        return self.add("request/header", {"header": header, "reason": "initial"})

    def assistant(self, name: str, *content: Json, step: int = 1, **fields: Json) -> int:
        """Add an answer."""
        message = {
            "id": name,
            "role": "assistant",
            "content": list(content) or [{"type": "text", "text": name}],
            "source": {"kind": "model", "provider": "p", "model": "m"},
        }
        data = {"turn": 1, "step": step, "message": message}
        if self.lines[0]["version"] == 2:
            data["stream"] = []
        return self.add("assistant/message", data, **{"surfaceOp": "append", **fields})

    def result(self, call_id: str, call: int) -> int:
        """Add the result of a tool call that stands at a seq."""
        block = {
            "type": "tool-result",
            "toolCallId": call_id,
            "content": [{"type": "text", "text": f"result of {call_id}"}],
        }
        message = {
            "id": f"t-{call_id}",
            "role": "user",
            "content": [block],
            "source": {"kind": "tool", "callId": call_id},
        }
        data = {"turn": 1, "step": 1, "message": message}
        return self.add("tool/result", data, surfaceOp="append", sourceEventSeqs=[call])

    def content(self) -> bytes:
        """Return the bytes of the file."""
        return b"".join(map(line, self.lines))


def small(version: int) -> Old:
    """Return one turn: a prompt, a question, an answer that came in deltas where the version has them."""
    old = Old(version)
    old.add("turn/start", {"turn": 1})
    old.add("step/start", {"turn": 1, "step": 1})
    old.user("question")
    old.header()
    if version < 2:
        old.run("text-chunks", "an", "sw", "er")
        old.finish()
    old.assistant("answer")
    old.add("step/end", {"turn": 1, "step": 1})
    old.add("turn/end", {"turn": 1, "reason": {"kind": "completed"}})
    return old


def compacted(version: int = 0) -> Old:
    """Return a log of version 0 or 1 in which every member that cites a seq does so."""
    prefix = "compact" if version == 0 else "compaction"
    old = Old(version)
    old.add("turn/start", {"turn": 1})
    old.add("step/start", {"turn": 1, "step": 1})
    first = old.user("first")
    old.header()
    old.run("text-chunks", "call")
    answer = old.assistant(
        "answer", {"type": "tool-call", "id": "c", "name": "read", "arguments": "{}"}
    )
    call = old.add("tool/call", {"turn": 1, "step": 1, "callId": "c", "name": "read"})
    result = old.result("c", call)
    old.add("session/title", {"title": "t", "messageSeqs": [first], "source": {"kind": "user"}})
    command = old.add("command/run", {"commandId": "k", "name": "compact"})
    done = {"commandId": "k", "kind": "success", "sourceEventSeq": command}
    old.add("command/done", done)
    accepted = {"sessionId": "old-1", "throughSeq": 4}
    old.add("session-log-deepseek/delivery-accepted", accepted)
    start = old.add(f"{prefix}/start", {"compactionId": "x", "turn": None})
    hidden = {
        "shadowedRange": {"start": first, "end": result},
        "shadowedSeqs": [first, answer, result],
    }
    summary = old.add(f"{prefix}/summary", {"compactionId": "x", "summary": [], **hidden})
    old.user(
        "summary",
        surfaceOp={"op": "replace", "start": first, "end": result},
        sourceEventSeqs=[first, answer, result, start, summary],
    )
    old.add(f"{prefix}/end", {"compactionId": "x", "turn": None})
    steering = "steering/message" if version == 0 else "user/message"
    old.user("more", type_=steering)
    return old


def types(records: Records) -> list[str]:
    """Return the types of records."""
    return [each["type"] for each in records]


def data_of(records: Records, type_: str) -> list[Any]:
    """Return the payloads of the records of a type."""
    return [each["data"] for each in records if each["type"] == type_]
