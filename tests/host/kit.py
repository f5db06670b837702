"""What the host's tests start from."""

from collections.abc import Sequence

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from tests.domain.kit import image, text, user


def another(store: SessionStore, *, snapshot_every: int = 0) -> Sessions:
    """Return a host with nothing in memory, as another process has it."""
    return Sessions(store, detached_composition(), snapshot_every=snapshot_every)


def hello(name: str = "u", *content: Json) -> AppendEvent:
    """Return the wish to append a user message."""
    return message("user/message", user(name, *(content or (text("hello"),))))


def pictures(name: str, count: int) -> AppendEvent:
    """Return the wish to append a user message with so many images."""
    return message("user/message", user(name, *(image(number) for number in range(count))))


def turn(number: int) -> list[AppendEvent]:
    """Return a whole turn of one user message."""
    return [
        AppendEvent("turn/start", {"turn": number}),
        hello(f"u-{number}", text(f"turn {number}")),
        AppendEvent("turn/end", {"turn": number, "reason": {"kind": "completed"}}),
    ]


def types(sessions: Sessions, name: str) -> Sequence[str]:
    """Return the types of a session's stored events."""
    return [event.type for event in sessions.log(name)]
