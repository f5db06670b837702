"""What a model was shown, request by request, rebuilt from the log alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from everfold.audit.walking import rows_upto
from everfold.session.composition import Composition
from everfold.session.detached import messages_of
from everfold.session.errors import SessionError, SessionNotFoundError
from everfold.session.events import EventLike, Recorded
from everfold.session.frozen import Json
from everfold.session.ids import HEADER_VERSION, seq_of
from everfold.session.ids import session_id as checked_id
from everfold.session.ports import SessionStore
from everfold.session.state import SessionState, StateFold
from everfold.session.surface import Surface

SETTLEMENTS = ("assistant/message", "assistant/attempt")
"""The events by which a request is answered, or fails."""


class RequestNotFoundError(SessionError):
    """A session has no request of this number."""

    code = "request"

    def __init__(self, session_id: str, number: int, count: int) -> None:
        super().__init__(f"session {session_id!r} has {count} request(s), no number {number}")
        self.number = number
        self.count = count


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model, as of the moment it was settled.

    Attributes:
        number: counts the session's requests from 1.
        header_seq: the `request/header` in force; None in a log that has none.
        settled_seq: the `assistant/message` or `assistant/attempt`; None if nothing came back.
        turn: of the settlement.
        failure: why it failed, as the log holds it; None for an answer.
        surface: what the model was shown.
    """

    number: int
    header_seq: int | None
    header: Mapping[str, Json] | None
    settled_seq: int | None
    turn: Json
    step: Json
    failure: Mapping[str, Json] | None
    surface: Surface

    @property
    def seq(self) -> int:
        """The last event that the request could show."""
        return self.surface.next_seq - 1

    def messages(self) -> list[tuple[int, Json]]:
        """Return seq and message of everything that the model was shown, in order."""
        return messages_of(self.surface)


def requests(store: SessionStore, session_id: str, composition: Composition) -> Iterator[Request]:
    """Yield the requests of a session in order, read from the store in pages.

    A request is found by its settlement. One that was never settled is yielded if the log tells
    of it by a header of its own.

    Raises:
        IdError: no session can have this id.
        SessionNotFoundError: there is no such session.
        SessionError: an event cannot be read or folded; the requests before it were yielded.
    """
    version = store.version(checked_id(session_id))
    if version < HEADER_VERSION:
        raise SessionNotFoundError(session_id)
    reading = _Reading(composition)
    for row in rows_upto(store, session_id, seq_of(version) + 1):
        yield from reading.take(row)
    yield from reading.unsettled()


def nth_request(
    store: SessionStore, session_id: str, composition: Composition, number: int
) -> Request:
    """Return one request of a session, counted from 1.

    Raises:
        RequestNotFoundError: the session has fewer.
        SessionNotFoundError, SessionError: as for `requests`.
    """
    count = 0
    for request in requests(store, session_id, composition):
        count = request.number
        if count == number:
            return request
    raise RequestNotFoundError(session_id, number, count)


@dataclass(slots=True)
class _Reading:
    """One pass over a log; `take` gives the requests that an event settles."""

    composition: Composition
    state: SessionState = field(default_factory=SessionState.empty)
    number: int = 0
    header: Recorded | None = None
    is_header_fresh: bool = False
    step: Mapping[str, Json] = field(default_factory=dict[str, Json])
    _pending: list[Recorded] = field(default_factory=list[Recorded])

    def take(self, row: Recorded) -> Iterator[Request]:
        if row.type in SETTLEMENTS:
            yield self._request(row)
            self.is_header_fresh = False
        elif row.type == "turn/end":
            yield from self.unsettled()
        elif row.type == "request/header":
            yield from self.unsettled()
            self.header, self.is_header_fresh = row, True
        elif row.type == "step/start" and isinstance(row.data, Mapping):
            self.step = row.data
        self._pending.append(row)

    def unsettled(self) -> Iterator[Request]:
        """Give the request that the last header announced, if nothing settled it."""
        if self.is_header_fresh:
            yield self._request(None)
            self.is_header_fresh = False

    def _request(self, settlement: Recorded | None) -> Request:
        self._fold()
        self.number += 1
        header = self._header_data()
        where = self.step
        if settlement is not None and isinstance(settlement.data, Mapping):
            where = settlement.data
        return Request(
            number=self.number,
            header_seq=None if self.header is None else self.header.seq,
            header=header,
            settled_seq=None if settlement is None else settlement.seq,
            turn=where.get("turn"),
            step=where.get("step"),
            failure=None if settlement is None else failure_of(settlement),
            surface=self.state.surface,
        )

    def _header_data(self) -> Mapping[str, Json] | None:
        data = None if self.header is None else self.header.data
        header = data.get("header") if isinstance(data, Mapping) else None
        return header if isinstance(header, Mapping) else None

    def _fold(self) -> None:
        fold = StateFold(self.state, self.composition)
        fold.run(self._pending)
        self.state = fold.state()
        self._pending.clear()


def failure_of(settlement: EventLike) -> Mapping[str, Json] | None:
    """Return the failure with which a settlement's stream finished, None for an answer.

    An attempt whose stream tells no reason gives an empty failure.
    """
    data = settlement.data
    stream = data.get("stream") if isinstance(data, Mapping) else None
    for record in reversed(stream if isinstance(stream, list) else []):
        chunk = record.get("chunk") if isinstance(record, Mapping) else None
        reason = chunk.get("reason") if isinstance(chunk, Mapping) else None
        failure = reason.get("failure") if isinstance(reason, Mapping) else None
        if isinstance(failure, Mapping):
            return failure
    return {} if settlement.type == "assistant/attempt" else None
