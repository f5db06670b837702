"""Why an agent refuses to go on."""

from typing import Literal

from everfold.session.errors import SessionError

Kept = Literal["queued", "taken"]

_STAYS: dict[Kept, str] = {
    "queued": "the input is queued and is run after that turn, by the next ask of any process; asking "
    "again with its key gives the answer",
    "taken": "the input is part of that turn, whose answer will be in the log",
}


class AgentError(SessionError):
    """The agent cannot do what was asked; the log is as it was."""

    code = "agent"


class TurnOpenError(AgentError):
    """The session has an open turn that is not this agent's.

    Attributes:
        session_id: the session.
        turn, start_seq: the open turn.
        kept: where an input is that was not taken back: `queued`, and run by whoever asks next or
            runs the queue; or `taken` into the open turn. None if nothing of it stays.
    """

    code = "turn-open"

    def __init__(self, session_id: str, turn: object, seq: int, kept: Kept | None = None) -> None:
        stays = "" if kept is None else f"; {_STAYS[kept]}"
        super().__init__(
            f"session {session_id!r} is inside turn {turn} (started at seq {seq}): another process "
            f"runs it, or one that ran it is gone{stays}",
            seq=seq,
            advice=f"if it is gone, close the turn with `sessions.resume({session_id!r})`, or open "
            "the agent with takes_over=True",
        )
        self.session_id = session_id
        self.turn = turn
        self.start_seq = seq
        self.kept = kept


class TakenOverError(AgentError):
    """Another process closed or took over the turn that this agent was running (B8)."""

    code = "taken-over"

    def __init__(self, session_id: str, turn: int, seq: int) -> None:
        super().__init__(
            f"turn {turn} of session {session_id!r} (started at seq {seq}) was taken over by "
            "another process; this one stops and asks no model again",
            seq=seq,
        )
        self.turn = turn


class InputError(AgentError):
    """What a user gave cannot be put to a model; nothing was stored."""

    code = "input"


class ToolDefinitionError(AgentError):
    """A function cannot be offered to a model as a tool."""

    code = "tool-definition"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"tool {name!r} {reason}")
        self.name = name


class AgentClosedError(AgentError):
    """The agent was closed; open another one on the session."""

    code = "agent-closed"
