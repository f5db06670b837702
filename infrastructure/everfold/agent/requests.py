"""The request that a model is asked: built from the log alone, and rebuilt from it at any later time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from everfold.agent.errors import AgentError
from everfold.host.sessions import Sessions
from everfold.llm.route import LlmRequest
from everfold.projections.compaction import wishes
from everfold.projections.compaction.summary_request import summary_request
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.growing import Growing
from everfold.session.request_context import logged_access_path
from everfold.session.session import Session

_OF_SUMMARIES = frozenset((wishes.START, wishes.REQUEST, wishes.RETRY))
"""Events by which a request for a summary is rebuilt, so that none of a turn can be."""


def rebuild_request(sessions: Sessions, session_id: str, seq: int) -> LlmRequest:
    """Return the request that was dispatched when `seq` was the last event.

    That is the summary's where the event is a `compaction/request`, the same again where it is a
    `compaction/retry`, and the turn's everywhere else.

    Raises:
        AgentError: no request was dispatched there, or it was one for a summary before these were
            logged.
        SummaryRequestError: the event does not say what was sent.
        SessionError: the log cannot be folded here.
    """
    session = sessions.load(session_id, at=seq)
    event = session.state.last
    type_ = None if event is None else event.type
    if type_ == wishes.REQUEST:
        return summary_request(session)
    if type_ == wishes.START:
        raise _nothing_sent(sessions, session)
    if type_ == wishes.RETRY:
        return summary_request(sessions.load(session_id, at=_seq_sent_again(sessions, session)))
    messages = tuple(session.messages())
    return LlmRequest(_header(session), messages, session_id, logged_access_path(session))


def turn_seq(sessions: Sessions, session: Session) -> int:
    """Return the seq by which a turn's request that is built from a session is rebuilt.

    It is the last one, unless a summary is asked for at the same time: events that tell of that
    are passed over. They change nothing in what a turn asks.
    """
    seq, event = session.next_seq - 1, session.state.last
    while tells_of_summary(event):
        seq -= 1
        event = _event_at(sessions, session, seq)
    return seq


def tells_of_summary(event: EventLike | None) -> bool:
    """Tell whether a request that is dispatched after an event may be one for a summary."""
    return event is not None and event.type in _OF_SUMMARIES


def _event_at(sessions: Sessions, session: Session, seq: int) -> EventLike | None:
    return None if seq < 0 else next(sessions.log(session.id, first=seq, last=seq), None)


def _seq_sent_again(sessions: Sessions, session: Session) -> int:
    """Return the seq of the request that is sent again after the retry that a session ends with.

    Raises:
        AgentError: it is not in the log.
    """
    start, retry = session.latest(wishes.START), session.state.last
    assert retry is not None, "the session ends with it"
    log = sessions.log(session.id, first=0 if start is None else start.seq, last=retry.seq)
    of = _compaction_of(retry)
    asked = [e.seq for e in log if e.type == wishes.REQUEST and _compaction_of(e) == of]
    if not asked:
        raise _not_logged(session)
    return asked[-1]


def _compaction_of(event: EventLike) -> Json:
    return event.data.get("compactionId") if isinstance(event.data, Mapping) else None


def _nothing_sent(sessions: Sessions, session: Session) -> AgentError:
    """Return the error for a compaction's start: what was sent is told by the event after it."""
    seq = session.next_seq
    after = _event_at(sessions, session, seq)
    if after is None or after.type != wishes.REQUEST:
        return _not_logged(session)
    return AgentError(
        f"no request was dispatched at seq {seq - 1}, where a compaction begins; that for its "
        f"summary is the one at seq {seq}",
        seq=seq - 1,
    )


def _not_logged(session: Session) -> AgentError:
    seq = session.next_seq - 1
    return AgentError(
        f"the log does not say what was asked for a summary at seq {seq}, so it cannot be rebuilt: "
        "it was written before there was `compaction/request`",
        seq=seq,
    )


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
