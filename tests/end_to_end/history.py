"""Conversations that are there already: turns as old logs hold them, appended in one batch."""

from collections.abc import Sequence

from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json
from tests.domain.kit import assistant, text, tool_result
from tests.host.kit import hello

COMPLETED: Json = {"kind": "completed"}


def call(id_: str, name: str = "note", arguments: str = "{}") -> Json:
    """Return a tool-call block."""
    return {"type": "tool-call", "id": id_, "name": name, "arguments": arguments}


def says(number: int, name: str, *content: Json) -> AppendEvent:
    """Return the wish for an answer of the model."""
    return message("assistant/message", {**assistant(name, *content), "turn": number, "step": 1})


def answers(number: int, call_id: str, *content: Json) -> AppendEvent:
    """Return the wish for a tool's result."""
    return message("tool/result", tool_result(call_id, *content, turn=number))


def failed(number: int, call_id: str) -> AppendEvent:
    """Return the wish for the result of a tool that failed."""
    error = {"name": "ToolError", "code": "FAILED"}
    data = tool_result(call_id, text("It broke."), turn=number, error=error)
    data["message"]["content"][0]["isError"] = True
    return message("tool/result", data)


def turn(
    number: int, words: str = "", *content: Json, call_ids: Sequence[str] = (), result: str = "done"
) -> list[AppendEvent]:
    """Return a whole turn: a question, calls with their results, an answer."""
    calls = [call(id_) for id_ in call_ids]
    exchange = [
        says(number, f"c-{number}", *calls),
        *(answers(number, id_, text(result)) for id_ in call_ids),
    ]
    return [
        AppendEvent("turn/start", {"turn": number}),
        hello(f"u-{number}", text(words or f"question {number}"), *content),
        *(exchange if calls else []),
        says(number, f"a-{number}", text(f"answer {number}")),
        AppendEvent("turn/end", {"turn": number, "reason": COMPLETED}),
    ]


def turns(count: int, words: str = "", tools: int = 0) -> list[AppendEvent]:
    """Return turns; with tools the n-th has 1 to `tools` calls at once."""
    return [
        wish
        for number in range(1, count + 1)
        for wish in turn(
            number,
            words and f"{number} {words}",
            call_ids=[f"call-{number}-{at}" for at in range(number % tools + 1)] if tools else (),
        )
    ]
