"""A hosted session on a fresh SQLite store, and what its tests read of it."""

from collections.abc import Sequence
from typing import Any

from everfold.host.access import HostedSession
from everfold.host.sessions import Sessions
from everfold.llm.failure import LlmFailure
from everfold.llm.route import Capabilities
from everfold.plugins.waterfalls import PreStepQuestion, RequestErrorQuestion
from everfold.projections.catalog import detached_composition
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from tests.domain.kit import wishes_of
from tests.domain.model import Record


class Never:
    """A cancellation that nobody asked for."""

    is_set = False


def hosted(store: SessionStore, records: Sequence[Record], name: str = "s") -> HostedSession:
    """Return a session of a new host that holds these records."""
    sessions = Sessions(store, detached_composition())
    sessions.create(name)
    if records:
        sessions.append_batch(name, wishes_of(records))
    return HostedSession(sessions, name)


def again(access: HostedSession) -> HostedSession:
    """Return the same session in a host that has nothing in memory."""
    sessions = Sessions(access.sessions.store, detached_composition())
    return HostedSession(sessions, access.session_id)


def types_after(access: HostedSession, seq: int) -> list[str]:
    """Return the types of the events after `seq`."""
    return [event.type for event in access.sessions.log(access.session_id, first=seq + 1)]


def shown(access: HostedSession) -> list[tuple[int, Json]]:
    """Return seq and message of all that the model sees."""
    return list(access.view().messages().items())


def pre_step(access: HostedSession, window: int | None = None, **more: Any) -> PreStepQuestion:
    """Return the question that a loop asks before a step."""
    facts = {"provider": "p", "model": "m", "kind": "first", "cancellation": Never(), **more}
    takes = Capabilities(user_images=True, tool_images=True, context_window=window)
    return PreStepQuestion(access, turn=1, step=1, capabilities=takes, **facts)


def request_error(access: HostedSession, code: str) -> RequestErrorQuestion:
    """Return the question that a loop asks after a failed request."""
    return RequestErrorQuestion(
        session=access,
        turn=1,
        step=1,
        provider="p",
        failure=LlmFailure("too long", code),
        attempt=1,
        retries_left=2,
        cancellation=Never(),
    )


async def nothing() -> None:
    """Answer for the rest of a chain that does not recover."""
