"""What the tests of field reports share: a host, turns with tools, and work for other processes."""

from multiprocessing.connection import Connection

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json, thaw
from tests.domain.kit import assistant, text, tool_result
from tests.host.kit import hello

COMPLETED: Json = {"kind": "completed"}


def call(call_id: str) -> Json:
    """Return a tool-call block."""
    return {"type": "tool-call", "id": call_id, "name": "run", "arguments": "{}"}


def asks(call_id: str, *, turn: int = 1) -> list[AppendEvent]:
    """Return the start of a turn: a user's message, and an answer that calls a tool, which runs."""
    where = {"turn": turn, "step": 1}
    return [
        AppendEvent("turn/start", {"turn": turn}),
        AppendEvent("step/start", where),
        hello(f"u-{turn}", text(f"turn {turn}")),
        message("assistant/message", {**assistant(f"a-{turn}", call(call_id)), **where}),
        AppendEvent("tool/call", {**where, "callId": call_id, "name": "run", "arguments": "{}"}),
    ]


def result(call_id: str, words: str = "done") -> AppendEvent:
    """Return the wish for a tool's answer."""
    return message("tool/result", tool_result(call_id, text(words)))


def turn(number: int, words: str = "") -> list[AppendEvent]:
    """Return a whole turn: a user's message and the answer."""
    where = {"turn": number, "step": 1}
    answer = assistant(f"a-{number}", text(f"answer {number}"))
    return [
        AppendEvent("turn/start", {"turn": number}),
        hello(f"u-{number}", text(words or f"turn {number}")),
        message("assistant/message", {**answer, **where}),
        AppendEvent("turn/end", {"turn": number, "reason": COMPLETED}),
    ]


def names(sessions: Sessions, session_id: str, *, at: int | None = None) -> list[str]:
    """Return the ids of the messages that the model sees."""
    return [str(each["id"]) for each in sessions.load(session_id, at=at).messages()]


def shown(sessions: Sessions, session_id: str) -> list[Json]:
    """Return the messages that the model sees, as plain values."""
    return [thaw(each) for each in sessions.load(session_id).messages()]


def names_elsewhere(url: str, session_id: str) -> list[str]:
    """Return the ids of the messages that the model sees; the work of a process of its own."""
    with open_sessions(url) as sessions:
        return names(sessions, session_id)


def append_elsewhere(url: str, session_id: str, name: str, words: str) -> int:
    """Append one user message wherever the log is; the work of a process of its own."""
    with open_sessions(url) as sessions:
        return sessions.append_batch(session_id, [hello(name, text(words))])[0].seq


def told(pipe: Connection, patience_s: float = 60.0) -> Json:
    """Return the next thing that comes through a pipe.

    Raises:
        AssertionError: nothing came.
    """
    assert pipe.poll(patience_s), "nothing came through the pipe"
    return pipe.recv()
