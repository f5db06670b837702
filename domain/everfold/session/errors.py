"""Every refusal of a session, each with a stable `code` that callers may branch on.

The codes that `docs/errors.md` lists are part of the public API: they never change meaning.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from everfold.session.events import Recorded


class SessionError(Exception):
    """A refusal; nothing was changed.

    Attributes:
        code: stable text for programs.
        seq: the event it is about, where there is one.
        fact: the message without its advice.

    Args:
        advice: what a program can do about it, said after the message. Where people use no Python,
            other advice takes its place.
    """

    code: ClassVar[str] = "session"

    def __init__(self, message: str, *, seq: int | None = None, advice: str | None = None) -> None:
        self.fact = _readable(message)
        super().__init__(self.fact if advice is None else f"{self.fact}; {advice}")
        self.seq = seq


def _readable(message: str) -> str:
    """Return a message whose middle is left out where it quotes a huge value."""
    omitted = len(message) - 2000
    if omitted <= 0:
        return message
    return f"{message[:1500]} […{omitted} characters…] {message[-500:]}"


class EnvelopeError(SessionError):
    """An event record has a wrong, missing or unknown field (R2 to R8)."""

    code = "envelope"


class EventSequenceError(SessionError):
    """An event's seq is not the next number (R1)."""

    code = "sequence"


class LosslessError(SessionError):
    """A value would not survive a JSON round trip (R138).

    Attributes:
        path: where it stands, as in `data.content[2].text`.
    """

    code = "json"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path


class TooLargeError(SessionError):
    """An event is over the configured cap of stored bytes."""

    code = "too-large"

    def __init__(self, size_bytes: int, max_bytes: int, *, seq: int | None = None) -> None:
        super().__init__(
            f"the event takes {size_bytes} bytes, {max_bytes} is the most; "
            "store large content as an attachment and refer to it",
            seq=seq,
        )
        self.size_bytes = size_bytes
        self.max_bytes = max_bytes


class AppendIntentError(SessionError):
    """Append options that this event type may not carry (R132 to R136)."""

    code = "append-intent"


class PayloadError(SessionError):
    """Event data breaks a rule of its type (R15 to R21)."""

    code = "payload"


class MessageShapeError(SessionError):
    """A message lacks its id, role, source, content or tool-result block (R25 to R32)."""

    code = "message-shape"


class SettlementError(SessionError):
    """Turn, step or stream of an assistant record is malformed (R33)."""

    code = "settlement"


class UnknownEventError(SessionError):
    """A required event of a type nobody here knows (V4, R315)."""

    code = "unknown-event"

    def __init__(self, type_: str, *, seq: int | None = None) -> None:
        super().__init__(
            f"event type {type_!r} is not known here and is not marked ignorable; "
            "load the plugin that owns it",
            seq=seq,
        )
        self.type = type_


class SurfaceError(SessionError):
    """An event cannot take the place on the surface that it asks for."""


class SurfaceOpError(SurfaceError):
    """The placement marker is missing, malformed, or not allowed on this event (R41 to R45)."""

    code = "surface-op"


class SourceRefsError(SurfaceError):
    """The cited sources are malformed or not earlier events (R50 to R54)."""

    code = "source-refs"


class ReplaceRangeError(SurfaceError):
    """The end points of a replacement do not bound a range of the surface (R49, R56, R57)."""

    code = "replace-range"


class ReplaceCoverageError(SurfaceError):
    """The cited sources leave out a node that the replacement hides (R58)."""

    code = "replace-coverage"


class ToolRewriteError(SurfaceError):
    """A tool result may replace one tool result, and change its content alone (R62 to R66)."""

    code = "tool-rewrite"


class SystemHeadError(SurfaceError):
    """The leading system message may only be replaced by another one (R67)."""

    code = "system-head"


class ProjectionError(SessionError):
    """A message projection is missing, has changed, or refused an event."""


class ProjectionMissingError(ProjectionError):
    """An event type that needs an interpreter has none (R101)."""

    code = "projection-missing"

    def __init__(self, type_: str, *, seq: int | None = None) -> None:
        super().__init__(
            f"event type {type_!r} needs a message projection and none is registered; "
            "load the plugin that owns it",
            seq=seq,
        )
        self.type = type_


class ProjectionChangedError(ProjectionError):
    """The interpreters in force are not those that this history used (R114 to R118, V3)."""

    code = "projection-removed"


class ProjectionDuplicateError(ProjectionError):
    """A second interpreter for a type that has an owner (R110)."""

    code = "projection-duplicate"


class ProjectionRejectedError(ProjectionError):
    """An interpreter refused an event, or gave an answer that cannot stand (V2)."""

    code = "projection-rejected"


class SessionHeaderError(SessionError):
    """The session header is invalid (R150 to R152)."""

    code = "session-header"


class SeedCutError(SessionError):
    """The inherited prefix does not fit header and seed (R158, R159)."""

    code = "seed-cut"


class IdError(SessionError):
    """Text that may not be an id."""

    code = "id"

    def __init__(self, value: object, reason: str) -> None:
        super().__init__(f"{value!r} cannot be an id: {reason}")
        self.value = value


class SessionExistsError(SessionError):
    """The session id is taken, or belonged to a session that was deleted (R177)."""

    code = "session-exists"

    def __init__(self, session_id: str, *, deleted: bool = False) -> None:
        what = "belonged to a session that was deleted" if deleted else "is taken"
        super().__init__(f"session id {session_id!r} {what}; choose another one")
        self.session_id = session_id


class SessionNotFoundError(SessionError):
    """No session has this id."""

    code = "fork-not-found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"there is no session {session_id!r}")
        self.session_id = session_id


class BoundaryError(SessionError):
    """A fork was asked for at a place where none is possible (R168)."""

    code = "fork-boundary"

    def __init__(self, boundary: object, last: int) -> None:
        seqs = f"is not a whole number in 0..{last}" if last >= 0 else "is none: there is no event"
        super().__init__(f"boundary {boundary!r} {seqs}")
        self.boundary = boundary
        self.last = last


class OpenTurnError(SessionError):
    """The prefix to be forked ends inside a turn (R169)."""

    code = "fork-open-turn"

    def __init__(self, session_id: str, boundary: int, turn_start: int) -> None:
        super().__init__(
            f"events 0..{boundary} of {session_id!r} end inside the turn that starts at "
            f"seq {turn_start}; fork at a seq before it or at the turn's end",
            seq=turn_start,
        )
        self.boundary = boundary


class AppendVetoedError(SessionError):
    """A publication listener refused a valid batch; nothing was stored (R143)."""

    code = "vetoed"


class ReentrantAppendError(SessionError):
    """An append was tried from inside a publication of the same session (R145)."""

    code = "reentrant"


class ConflictError(SessionError):
    """Another writer was first; decide again on the new history (V5).

    Attributes:
        expected_version: stream version this decision was made on.
        appended: what the others stored after it, in order.
    """

    code = "conflict"

    def __init__(
        self, session_id: str, expected_version: int, appended: Sequence["Recorded"]
    ) -> None:
        super().__init__(
            f"session {session_id!r} moved on: {len(appended)} event(s) were stored after "
            f"version {expected_version}; refresh and decide again"
        )
        self.session_id = session_id
        self.expected_version = expected_version
        self.appended = tuple(appended)


class EventIdReusedError(SessionError):
    """An event id was given a second time, with other content."""

    code = "event-id-reused"

    def __init__(self, session_id: str, event_id: str) -> None:
        super().__init__(
            f"event id {event_id!r} was already used in session {session_id!r} for other content"
        )
        self.event_id = event_id


class StoreError(SessionError):
    """The store could not do what was asked; the append did not happen unless it says so."""

    code = "store"


class StoreUnavailableError(StoreError):
    """The database cannot be reached, or its connection was lost."""

    code = "store-unavailable"


class StoreBusyError(StoreError):
    """Other writers held the database for longer than the bounded wait."""

    code = "store-busy"


class StoreReadOnlyError(StoreError):
    """The database file or role may not be written."""

    code = "store-read-only"


class StoreFullError(StoreError):
    """The disk is full; the append is absent as a whole."""

    code = "store-full"


class StoreUrlError(StoreError):
    """A store URL that cannot be understood, or whose driver is not installed."""

    code = "store-url"


class StoreTextError(StoreError):
    """A stream id, a prefix or a topic that no database can hold; nothing was looked up or stored.

    Attributes:
        text: what was given.
    """

    code = "store-text"

    def __init__(self, text: str, position: int, what: str) -> None:
        super().__init__(f"{text!r} cannot be stored or looked up: character {position} is {what}")
        self.text = text


class ForeignDatabaseError(StoreError):
    """The database holds tables that are not everfold's; it was not touched."""

    code = "store-foreign"


class SchemaVersionError(StoreError):
    """The database's schema is newer than this program, or was never created."""

    code = "store-schema"


class CorruptStreamError(StoreError):
    """A stored stream has a gap or an unreadable row; the prefix before it is whole.

    Attributes:
        session_id: the stream.
        seq: the first event that cannot be read (-1: the header).
    """

    code = "store-corrupt"

    def __init__(self, session_id: str, seq: int, reason: str) -> None:
        where = "its header" if seq < 0 else f"seq {seq}"
        before = f"`sessions.load({session_id!r}, at={seq - 1})` gives it as it was before"
        super().__init__(
            f"session {session_id!r} cannot be read at {where}: {reason}",
            seq=seq,
            advice=before if seq > 0 else None,
        )
        self.session_id = session_id
