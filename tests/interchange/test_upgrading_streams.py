"""Stream deltas of format versions 0 and 1: each goes into what settled it (R346, R348)."""

from collections.abc import Callable

from tests.interchange.files import TIME_MS
from tests.interchange.old_files import Old, Records, data_of, types

STOP = {"type": "finish", "reason": {"kind": "stop"}}


def test_deltas_go_into_the_message_that_settled_them(
    upgraded: Callable[[Old], Records],
) -> None:
    """R346, R348."""
    old = Old(1)
    old.add("step/start", {"turn": 1, "step": 1})
    first = old.chunk({"type": "block-start", "index": 0, "blockType": "text"})
    old.run("text-chunks", "an", "sw", "er")
    old.run("tool-call-chunks", "{", "}", id="c", name="read")
    old.finish()
    old.assistant("answer", sourceEventSeqs=[first, first + 1])

    records = upgraded(old)

    assert types(records) == ["step/start", "system/message", "assistant/message"]
    assert "sourceEventSeqs" not in records[2]
    assert records[2]["data"]["stream"] == [
        {
            "type": "chunk",
            "time": TIME_MS + 10,
            "chunk": {"type": "block-start", "index": 0, "blockType": "text"},
        },
        {
            "type": "text-chunks",
            "time0": TIME_MS + 20,
            "index": 0,
            "dt": [3, 3],
            "texts": ["an", "sw", "er"],
        },
        {
            "type": "tool-call-chunks",
            "time0": TIME_MS + 50,
            "index": 0,
            "dt": [3],
            "id": "c",
            "name": "read",
            "args": ["{", "}"],
        },
        {"type": "chunk", "time": TIME_MS + 70, "chunk": STOP},
    ]


def test_a_stream_that_no_message_settled_is_an_attempt_where_it_ended(
    upgraded: Callable[[Old], Records],
) -> None:
    old = Old(1)
    old.add("step/start", {"turn": 1, "step": 1})
    old.run("text-chunks", "a", "b")
    old.finish("error", failure={"message": "no", "code": "SERVER"})
    old.add("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": []})
    old.add("llm/retry", {"retryId": "r", "turn": 1, "step": 1})
    old.run("text-chunks", "an", "swer")
    old.add("agent/inbox/spliced", {"target": "next-turn", "start": 1, "inserted": []})
    old.finish()
    old.assistant("answer")
    old.run("reasoning-chunks", "cut", "off", step=2)

    records = upgraded(old)

    assert types(records) == [
        "step/start",
        "system/message",
        "assistant/attempt",
        "agent/inbox/spliced",
        "llm/retry",
        "agent/inbox/spliced",
        "assistant/message",
        "assistant/attempt",
    ]
    failed, cut = data_of(records, "assistant/attempt")
    assert [each["type"] for each in failed["stream"]] == ["text-chunks", "chunk"]
    assert (failed["turn"], failed["step"], cut["step"]) == (1, 1, 2)
    assert [each["type"] for each in records[6]["data"]["stream"]] == ["text-chunks", "chunk"]
    assert (records[2]["time"], records[7]["time"]) == (TIME_MS + 30, TIME_MS + 113)


def test_a_new_stream_of_the_same_step_begins_after_the_end_of_the_last(
    upgraded: Callable[[Old], Records],
) -> None:
    old = Old(1)
    old.add("step/start", {"turn": 1, "step": 1})
    old.finish("error", failure={"message": "no", "code": "SERVER"})
    old.run("text-chunks", "answer")
    old.assistant("answer")

    records = upgraded(old)

    assert types(records)[2:] == ["assistant/attempt", "assistant/message"]
    assert len(records[3]["data"]["stream"]) == 1


def test_an_answer_without_deltas_has_an_empty_stream(upgraded: Callable[[Old], Records]) -> None:
    old = Old(1)
    old.assistant("answer")

    assert data_of(upgraded(old), "assistant/message")[0]["stream"] == []
