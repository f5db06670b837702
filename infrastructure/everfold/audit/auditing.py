"""The audit of a session: its stored events, folded anew, against every other way to see them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from everfold.attachments.ids import AttachmentId
from everfold.attachments.references import Holds, id_in
from everfold.audit.walking import Effect, Finding, Step, Walk, rows_upto
from everfold.llm.images import images, is_omitted
from everfold.session.composition import Composition
from everfold.session.derive import derive_event_message
from everfold.session.detached import fold_surface
from everfold.session.errors import SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json, json_equal
from everfold.session.ids import seq_of
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from everfold.session.surface import Surface


class Hosted(Protocol):
    """A host whose sessions are audited."""

    @property
    def store(self) -> SessionStore:
        """Where the streams are."""
        ...

    @property
    def composition(self) -> Composition:
        """The event types and projections in force."""
        ...

    def load(self, wanted_id: str, *, at: int | None = None) -> Session:
        """Return a session as it is now, or as it was after the event `at`."""
        ...


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place, in surface order, where two views are not the same.

    Attributes:
        seq: the node, or the last event of the log where the views differ as a whole.
    """

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class ViewCheck:
    """How one way to see a session compares with the audit's own fold.

    Attributes:
        name: `live` (what the host holds), `restored` (made anew, from a snapshot if one fits) or
            `detached` (a fold without a host).
        difference: None if the views agree.
    """

    name: str
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class MissingImage:
    """An image that models are shown and whose bytes are not there.

    Attributes:
        seq: the node that shows it.
        index: its place among the images of that message, from 0.
    """

    seq: int
    index: int
    attachment_id: AttachmentId


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found.

    Attributes:
        event_count: events that could be read and folded, from seq 0 on.
        stored_count: events that the stream should have.
        effects: how many events did what to the surface.
        node_count: nodes that the readable events come to.
        views: compared views; none if the walk did not reach the end.
        missing: images without bytes, if attachments were given; none if the walk did not reach the
            end. The log is sound without them.
    """

    session_id: str
    event_count: int
    stored_count: int
    effects: dict[Effect, int]
    node_count: int
    replace_generation: int
    content_generation: int
    findings: tuple[Finding, ...]
    views: tuple[ViewCheck, ...]
    missing: tuple[MissingImage, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong and every view agrees."""
        return not self.findings and all(view.difference is None for view in self.views)


def audit(
    sessions: Hosted,
    session_id: str,
    *,
    on_step: Callable[[Step], None] | None = None,
    attachments: Holds | None = None,
) -> AuditReport:
    """Walk a session's stored events in order, fold them anew, and compare with the other views.

    Args:
        attachments: where the images that models are shown should be; None looks for none.
        on_step: is told what each event did, as it is walked; up to the first unreadable one.

    Raises:
        IdError: no session can have this id.
        SessionNotFoundError: there is no such session.
        StoreError: the database failed.
    """
    walk = Walk(sessions.store, session_id, sessions.composition)
    effects: Counter[Effect] = Counter()
    for step in walk:
        effects[step.effect] += 1
        if on_step is not None:
            on_step(step)
    findings = list(walk.findings)
    views = _compared(sessions, walk, findings) if walk.is_complete else []
    missing = _missing(walk.surface, attachments) if walk.is_complete and attachments else ()
    return AuditReport(
        session_id=session_id,
        event_count=walk.event_count,
        stored_count=seq_of(walk.last_version) + 1,
        effects=dict(effects),
        node_count=len(walk.surface.nodes),
        replace_generation=walk.surface.replace_generation,
        content_generation=walk.surface.content_generation,
        findings=tuple(findings),
        views=tuple(views),
        missing=tuple(missing),
    )


def _missing(surface: Surface, held: Holds) -> Iterator[MissingImage]:
    surface.events.prefetch(surface.nodes)
    for seq in surface.nodes:
        message = _message(surface, seq)
        content = message.get("content") if isinstance(message, Mapping) else None
        for index, image in enumerate(images(content if isinstance(content, list) else ())):
            id_ = id_in(image.get("attachment"))
            if id_ is not None and not is_omitted(image) and not held.has(id_):
                yield MissingImage(seq, index, id_)


def _compared(sessions: Hosted, walk: Walk, findings: list[Finding]) -> list[ViewCheck]:
    """Return the checks of all views; one that cannot be made is a finding."""
    checks = []
    for name, view in _views(sessions, walk):
        try:
            # No view outlives its comparison: each may be as large as the log.
            difference = first_difference(walk.surface, view())
        except SessionError as error:
            seq = walk.event_count - 1 if error.seq is None else error.seq
            reason = f"there is no {name} view: {error.fact}"
            findings.append(Finding(walk.session_id, seq, error.code, reason))
        else:
            checks.append(ViewCheck(name, difference))
    return checks


def _views(sessions: Hosted, walk: Walk) -> list[tuple[str, Callable[[], Surface]]]:
    session_id, count = walk.session_id, walk.event_count

    def live() -> Surface:
        session = sessions.load(session_id)
        # Others may have appended since the walk began; what was walked is what is compared.
        at = None if session.next_seq == count else count - 1
        return surface_of(session if at is None else sessions.load(session_id, at=at))

    def restored() -> Surface:
        return surface_of(sessions.load(session_id, at=count - 1))

    def detached() -> Surface:
        rows = rows_upto(sessions.store, session_id, count)
        return fold_surface(rows, sessions.composition).surface

    views: list[tuple[str, Callable[[], Surface]]] = [("live", live), ("detached", detached)]
    return views if count == 0 else [views[0], ("restored", restored), views[1]]


def surface_of(session: Session) -> Surface:
    """Return a session's surface, as its own reads see it.

    Raises:
        ProjectionChangedError: the interpreters in force are not those of this history.
    """
    session.messages()
    return session.state.surface


def first_difference(expected: Surface, actual: Surface) -> Difference | None:
    """Return the first place where two surfaces are not the same, None if they agree.

    Nodes, messages and generations are compared; equal messages are equal JSON (R65).
    """
    for surface in (expected, actual):
        surface.events.prefetch(surface.nodes)
    for wanted, given in zip_longest(expected.nodes, actual.nodes):
        difference = _node_difference(expected, actual, wanted, given)
        if difference is not None:
            return difference
    return _generation_difference(expected, actual)


def _node_difference(
    expected: Surface, actual: Surface, wanted: int | None, given: int | None
) -> Difference | None:
    if wanted is None or given is None:
        seq, which = (given, "more") if wanted is None else (wanted, "fewer")
        return Difference(-1 if seq is None else seq, f"the view has {which} nodes, from here on")
    if wanted != given:
        return Difference(min(wanted, given), f"the view has node {given} where {wanted} stands")
    if _is_same_row(expected, actual, wanted):
        return None
    if not json_equal(_message(expected, wanted), _message(actual, wanted)):
        return Difference(wanted, "the view shows another message for this node")
    return None


def _is_same_row(expected: Surface, actual: Surface, seq: int) -> bool:
    """Tell whether both views show what one and the same stored row says; nothing is decoded."""
    if seq in expected.messages or seq in actual.messages:
        return False
    left, right = expected.events.find(seq), actual.events.find(seq)
    return isinstance(left, Recorded) and left == right


def _generation_difference(expected: Surface, actual: Surface) -> Difference | None:
    for name in ("next_seq", "replace_generation", "content_generation"):
        wanted, given = getattr(expected, name), getattr(actual, name)
        if wanted != given:
            reason = f"the view's {name.replace('_', ' ')} is {given}, not {wanted}"
            return Difference(expected.next_seq - 1, reason)
    return None


def _message(surface: Surface, seq: int) -> Json:
    event = surface.events.find(seq)
    return None if event is None else derive_event_message(event, surface.messages)
