"""Saying in words how a session's last turn stands, where it did not simply end."""

from collections.abc import Mapping
from dataclasses import dataclass

from everfold.session.frozen import Json
from everfold.session.session import Session

OPEN = "open"
_ENDED: Mapping[str, str] = {
    "max-tokens": "its answer was cut off by a limit of tokens",
    "aborted": "it was cancelled",
    "interrupted": "it was broken off, and closed later",
}


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The last turn of a session.

    Attributes:
        state: `open`, or the kind of its end: `completed`, `aborted`, `error`, …
        seq: of its start if it is open, else of its end.
        failure: what the end says of an error: `code` and `message`; empty for none.
    """

    turn: Json
    state: str
    seq: int
    failure: Mapping[str, Json]


def last_turn(session: Session) -> LastTurn | None:
    """Return the last turn of a session, None if it had none."""
    start, end = session.latest("turn/start"), session.latest("turn/end")
    if start is not None and session.is_turn_open:
        return LastTurn(start.data.get("turn"), OPEN, start.seq, {})
    if end is None:
        return None
    reason = end.data.get("reason")
    said = reason if isinstance(reason, Mapping) else {}
    failure = said.get("error")
    return LastTurn(
        end.data.get("turn"),
        str(said.get("kind", "?")),
        end.seq,
        failure if isinstance(failure, Mapping) else {},
    )


def turn_text(session: Session) -> str | None:
    """Return what is to be said of the last turn; None if there was none, or the model completed it."""
    found = last_turn(session)
    if found is None or found.state == "completed":
        return None
    if found.state == OPEN:
        return (
            f"turn {found.turn} is open since seq {found.seq}; if the process that ran it is gone, "
            f"`everfold chat {session.id} --resume` closes it and goes on"
        )
    told = _ENDED.get(found.state, f"it ended as {found.state}")
    if found.failure:
        told = f"it failed: {found.failure.get('code')}: {found.failure.get('message')}"
    return f"turn {found.turn} has no whole answer, {told} (seq {found.seq})"


def turn_record(session: Session) -> Json:
    """Return the last turn as JSON, None if there was none."""
    found = last_turn(session)
    return None if found is None else {"turn": found.turn, "state": found.state, "seq": found.seq}


def is_interrupted(data: Json) -> bool:
    """Tell whether the data of an answer say that it broke off."""
    return isinstance(data, Mapping) and data.get("interrupted") is True
