"""The request that a model is asked: built from the log alone, and rebuilt from it at any later time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from everfold.agent.errors import AgentError
from everfold.host.sessions import Sessions
from everfold.llm.route import LlmRequest
from everfold.session.frozen import Json
from everfold.session.growing import Growing
from everfold.session.request_context import logged_access_path
from everfold.session.session import Session


def rebuild_request(sessions: Sessions, session_id: str, seq: int) -> LlmRequest:
    """Return the request that was dispatched when `seq` was the last event.

    Raises:
        AgentError: no request header had been written by then.
        SessionError: the log cannot be folded here.
    """
    session = sessions.load(session_id, at=seq)
    messages = tuple(session.messages())
    return LlmRequest(_header(session), messages, session_id, logged_access_path(session))


def _header(session: Session) -> Mapping[str, Json]:
    event = session.latest("request/header")
    if event is None:
        raise AgentError(
            f"session {session.id!r} has no request/header up to seq {session.next_seq - 1}, "
            "so no request was dispatched there",
            seq=session.next_seq - 1,
        )
    header: Mapping[str, Json] = event.data["header"]
    return header


@dataclass(slots=True)
class RequestBuilder:
    """Builds the requests of one loop; messages seen before stay the same objects (R128)."""

    _generation: int = -1
    _messages: Growing[Json] = field(default_factory=Growing)

    def build(self, session: Session) -> LlmRequest:
        """Return the request that the log asks for now: its latest header and context, its derived messages."""
        path = logged_access_path(session)
        return LlmRequest(_header(session), self._derived(session), session.id, path)

    def _derived(self, session: Session) -> Growing[Json]:
        conversation, known = session.messages(), self._messages
        if session.content_generation != self._generation or len(conversation) < len(known):
            self._messages = Growing(conversation)
        else:
            self._messages = known.extended(conversation[len(known) :])
        self._generation = session.content_generation
        return self._messages
