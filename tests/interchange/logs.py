"""Logs shaped like recorded ones: what sessions of the reference system consist of."""

from collections.abc import Callable

from everfold.session.frozen import Json
from tests.interchange.files import HEADER, IMAGE, Log, file_of


def plain_turns(count: int = 3) -> bytes:
    log = Log()
    for turn in range(1, count + 1):
        log.open_turn(turn)
        if turn == 1:
            log.system(turn)
        log.user()
        log.header("initial" if turn == 1 else "change")
        log.add("request/context", {"provider": "p", "model": "m", "contextWindow": 128000})
        log.assistant(turn)
        log.close_turn(turn)
    return file_of(log.records)


def tools_and_titles() -> bytes:
    log = Log()
    log.open_turn(1)
    log.system(1)
    log.user()
    log.header()
    for number in range(4):
        log.tool_call(1, f"call-{number}")
        log.result(1, f"call-{number}", "x" * 300)
    log.add(
        "session/title",
        {"title": "Boote zählen 🚣", "messageSeqs": [3], "source": {"kind": "user"}},
    )
    log.add("todo/write", {"todos": [{"content": "count", "status": "completed"}]})
    log.assistant(1)
    log.close_turn(1)
    return file_of(log.records)


def omission() -> bytes:
    log = Log()
    log.open_turn(1)
    log.system(1)
    first = log.user({"type": "text", "text": "see"}, IMAGE, IMAGE)
    log.header()
    failure = {"message": "too large", "code": "IMAGE_OFFLOAD_REQUIRED", "offloadImages": 1}
    finish = {"type": "finish", "reason": {"kind": "error", "failure": failure}}
    stream = [{"type": "chunk", "time": 1_723_000_000_899, "chunk": finish}]
    log.add("assistant/attempt", {"turn": 1, "step": 1, "stream": stream})
    log.add("image/offload", {"targets": [{"seq": first, "imageIndexes": [0]}]})
    log.header("series")
    log.assistant(1)
    log.close_turn(1)
    return file_of(log.records)


def compaction() -> bytes:
    log = Log()
    log.open_turn(1)
    log.system(1)
    nodes = [log.user() for _ in range(5)]
    log.header()
    nodes.append(log.assistant(1))
    log.close_turn(1)
    start = log.add("compaction/start", {"compactionId": "c-1", "turn": None})
    summary = {
        "compactionId": "c-1",
        "summary": [{"type": "text", "text": "boats were counted"}],
        "shadowedRange": {"start": nodes[0], "end": nodes[-1]},
        "shadowedSeqs": nodes,
        "shadowedTokenCount": 91,
        "provider": "p",
        "model": "m",
    }
    log.add("compaction/summary", summary)
    log.user(
        {"type": "text", "text": "<summary>boats were counted</summary>"},
        surfaceOp={"op": "replace", "startSeq": nodes[0], "endSeq": nodes[-1]},
        sourceEventSeqs=[[nodes[0], nodes[4]], nodes[5], start, start + 1],
    )
    log.add("compaction/end", {"compactionId": "c-1", "turn": None})
    return file_of(log.records)


def pruned_result() -> bytes:
    log = Log()
    log.open_turn(1)
    log.system(1)
    log.user()
    log.header()
    log.tool_call(1, "call-1")
    old = log.result(1, "call-1", "long " * 50)
    shadowed = {"start": old, "end": old}
    log.add(
        "compaction/prune",
        {"shadowedRange": shadowed, "shadowedSeqs": [old], "shadowedTokenCount": 70},
    )
    marker = {"op": "replace", "startSeq": old, "endSeq": old}
    log.result(1, "call-1", "long … long", surfaceOp=marker, sourceEventSeqs=[old])
    log.close_turn(1, "interrupted")
    return file_of(log.records)


def fork() -> bytes:
    log = Log()
    log.open_turn(1)
    log.system(1)
    log.user()
    log.close_turn(1)
    log.add("session/end-seed", {"inherited": True})
    log.open_turn(2)
    log.user()
    log.close_turn(2)
    log.add("session/end-seed", {})
    header = {**HEADER, "id": "session-2", "isSeeded": True, "parentSession": "session-1"}
    return file_of(log.records, header)


def subagent() -> bytes:
    log = Log()
    log.user({"type": "agent-block", "unknown": [None, True, {}]})
    extra = {"origin": "subagent", "delegationDepth": 2, "agentPreset": "ptc", "acme": {"a": [1]}}
    header = {**HEADER, "id": "child of [session-1]", **extra}
    del header["cwd"]
    return file_of(log.records, header)


def foreign_events() -> bytes:
    log = Log()
    log.add("acme/note", {"text": "kept"}, ignorable=True)
    log.add("acme/note", None, ignorable=True, sourceEventSeqs=[0])
    log.add("acme/note", [], ignorable=True, surfaceOp=None, sourceEventSeqs=[[0, 1], 7])
    log.add("acme/note?@%", "text", ignorable=True, surfaceOp={"data": 2, "x": 1})
    log.user()
    return file_of(log.records)


def odd_values() -> bytes:
    log = Log()
    texts: list[Json] = [
        "W\x00s\x00",
        "\\u0000",
        "\x7f\x1b[31m",
        "\u2028\u2029",
        "e\u0301é",
        "🚣",
        "",
    ]
    log.user(*({"type": "text", "text": text} for text in texts))
    numbers = [2**53 - 1, -(2**53 - 1), 0, 0.1, -2.5, 1234.5678, 0.30000000000000004]
    data: Json = {"\x00": numbers, "": None, "nested": [[[[]]]], "10": 1, "9": 2}
    log.add("todo/write", data)
    return file_of(log.records)


LOGS: dict[str, Callable[[], bytes]] = {
    each.__name__: each
    for each in (
        plain_turns,
        tools_and_titles,
        omission,
        compaction,
        pruned_result,
        fork,
        subagent,
        foreign_events,
        odd_values,
    )
}
"""Every shape by name."""
