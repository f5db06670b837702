"""Walking a stored stream in order: what each event did to the surface, and what is wrong with it.

The rule to keep: every row is looked at. A restore skips what it does not need to decode; an
audit decodes everything, and folds every event by itself, without the restore's short cuts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from everfold.session.composition import Composition
from everfold.session.doors import check_inherited_cut
from everfold.session.envelope import check_record
from everfold.session.errors import SessionError, SessionNotFoundError
from everfold.session.events import ABSENT, CREATED_TOPIC, Recorded, placement_bytes, state_bytes
from everfold.session.frozen import Json
from everfold.session.ids import HEADER_VERSION, seq_of, version_of
from everfold.session.ids import session_id as checked_id
from everfold.session.lossless import encode
from everfold.session.payload import check_payload
from everfold.session.ports import SessionStore
from everfold.session.session import header_of
from everfold.session.short_streams import stored_form
from everfold.session.state import SessionState, StateFold
from everfold.session.surface import Append, Hide, Plan, Project, Surface

Effect = Literal["appended", "hid", "changed", "nothing"]


@dataclass(frozen=True, slots=True)
class Step:
    """One stored event and what it did to the surface.

    Attributes:
        time_ms: when it was decided, in milliseconds since 1970 UTC.
        effect: it became a node (`appended`), a node in place of others (`hid`), it changed what
            the model sees of others (`changed`), or it only stands in the log (`nothing`).
        seqs: the nodes that it hid or changed.
        plugin: whose projection changed them.
    """

    seq: int
    type: str
    time_ms: int
    effect: Effect
    seqs: tuple[int, ...] = ()
    plugin: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a stored stream.

    Attributes:
        seq: the event it is about; -1 for the header.
        code: of the rule that is broken (docs/errors.md); `bytes` where an event would be stored
            with other bytes today; `projection-failed` where an interpreter raised.
    """

    session_id: str
    seq: int
    code: str
    message: str


class Walk:
    """Folds a stored stream event by event; iterate it once, then read what it came to.

    Iterating never raises for what is stored: it ends before the first event that cannot be read
    or may not stand where it stands, and `findings` says why.

    Args:
        upto: stream version to stop at; the stream's last one if None.

    Raises:
        IdError: no session can have this id.
        SessionNotFoundError: there is no such stream.
    """

    def __init__(
        self,
        store: SessionStore,
        session_id: str,
        composition: Composition,
        *,
        upto: int | None = None,
    ) -> None:
        self.session_id = checked_id(session_id)
        self.last_version = store.version(session_id) if upto is None else upto
        if self.last_version < HEADER_VERSION:
            raise SessionNotFoundError(session_id)
        self.findings: list[Finding] = []
        self.is_complete = False
        self._store = store
        self._fold = StateFold(SessionState.empty(), composition)
        self._header: dict[str, Json] | None = None
        self._surface: Surface | None = None

    @property
    def event_count(self) -> int:
        """How many events were folded so far."""
        return self._fold.next_seq if self._surface is None else self._surface.next_seq

    @property
    def surface(self) -> Surface:
        """The surface that the walked events come to; known when the iteration is over."""
        assert self._surface is not None, "walk the stream first"
        return self._surface

    def __iter__(self) -> Iterator[Step]:
        for row in self._rows(0, HEADER_VERSION):
            self._check_header(row)
        if self._header is None and not self.findings:
            self._report(-1, "store-corrupt", "the row is missing")
        due = HEADER_VERSION + 1
        for row in self._rows(HEADER_VERSION, self.last_version):
            step = self._step(row) if row.originator_version == due else None
            if step is None:
                break
            due += 1
            yield step
        self._finish(due)

    def _rows(self, after: int, upto: int) -> Iterator[Recorded]:
        """Yield rows up to the first one that the store cannot give."""
        try:
            yield from self._store.read(self.session_id, after=after, upto=upto)
        except SessionError as error:
            if error.seq is None:
                raise
            self._report(error.seq, error.code, error.fact)

    def _finish(self, due: int) -> None:
        state = self._fold.state()
        self._surface = state.surface
        self.is_complete = state.next_seq == seq_of(self.last_version) + 1
        if not self.is_complete and not self._is_named(state.next_seq):
            self._report(seq_of(due), "store-corrupt", "the row is missing")
        if self.is_complete and self._header is not None:
            header = self._header
            self._try(-1, lambda: check_inherited_cut(header, state))

    def _is_named(self, seq: int) -> bool:
        return any(finding.seq == seq for finding in self.findings)

    def _check_header(self, row: Recorded) -> None:
        if row.topic != CREATED_TOPIC:
            self._report(-1, "session-header", f"the first row's topic is {row.topic!r}")
        if self._try(-1, lambda: self._check_bytes(row)):
            self._try(-1, lambda: self._read_header(row))

    def _read_header(self, row: Recorded) -> None:
        self._header = header_of(row)

    def _step(self, row: Recorded) -> Step | None:
        """Return what a row did; None if it cannot be read or may not stand here."""
        steps: list[Step] = []
        is_sound = self._try(row.seq, lambda: steps.append(self._folded(row)))
        return steps[0] if is_sound else None

    def _folded(self, row: Recorded) -> Step:
        self._check_bytes(row)
        record = row.record()
        check_record(record, "the event")
        check_payload(row.type, record["data"], row.seq)
        self._fold.check_known(row.type, ignorable=row.ignorable)
        plan = self._fold.surface.plan(row)
        self._fold.apply(row, plan)
        return _step_of(row, record["time"], plan)

    def _check_bytes(self, row: Recorded) -> None:
        """Report a row that everfold never stored with these bytes; it is still read."""
        if row.state not in _encoded(row.type, row.envelope()):
            self._report(
                row.seq, "bytes", "the stored bytes are not those that this event is written with"
            )

    def _try(self, seq: int, check: Callable[[], None]) -> bool:
        try:
            check()
        except SessionError as error:
            self._report(seq, error.code, error.fact)
        except Exception as error:  # noqa: BLE001 - a damaged row or a plugin's interpreter may raise anything
            notes = getattr(error, "__notes__", None)
            reason = "; ".join([f"{type(error).__name__}: {error}", *(notes or ())])
            self._report(seq, "projection-failed" if notes else "store-corrupt", reason)
        else:
            return True
        return False

    def _report(self, seq: int, code: str, message: str) -> None:
        self.findings.append(Finding(self.session_id, seq, code, message))


def _encoded(type_: str, envelope: dict[str, Json]) -> set[bytes]:
    """Return the bytes that an envelope is stored with, and those of before streams were shortened."""
    origin = b""
    for name in ("actor", "correlationId"):
        if name in envelope:
            origin += b',"%b":%b' % (name.encode(), encode(envelope[name], name)[0])
    data, copy = encode(envelope["data"])
    placement = placement_bytes(
        type_, envelope.get("surfaceOp", ABSENT), envelope.get("sourceEventSeqs", ABSENT)
    )
    return {
        state_bytes(
            form,
            event_id=envelope["eventId"],
            time_ms=envelope["time"],
            placement=placement,
            origin=origin,
        )
        for form in (data, stored_form(type_, data, copy))
    }


def _step_of(row: Recorded, time_ms: int, plan: Plan) -> Step:
    if isinstance(plan, Append):
        return Step(row.seq, row.type, time_ms, "appended")
    if isinstance(plan, Hide):
        return Step(row.seq, row.type, time_ms, "hid", plan.replacement.shadowed)
    if isinstance(plan, Project):
        changed = tuple(sorted(plan.updates))
        return Step(row.seq, row.type, time_ms, "changed", changed, plan.projection.plugin)
    return Step(row.seq, row.type, time_ms, "nothing")


def rows_upto(store: SessionStore, session_id: str, event_count: int) -> Iterator[Recorded]:
    """Yield the first so many stored events, the header not counted."""
    if event_count:
        yield from store.read(session_id, after=HEADER_VERSION, upto=version_of(event_count - 1))
