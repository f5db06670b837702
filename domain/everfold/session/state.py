"""The state of a session: the fold of its log, as a value (surface, and the few facts beside it)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from types import MappingProxyType

from everfold.session.composition import Composition
from everfold.session.errors import EventSequenceError, ProjectionChangedError, UnknownEventError
from everfold.session.events import PLAIN, EventLike, Recorded, topic_of, type_of
from everfold.session.frozen import Json
from everfold.session.ids import version_of
from everfold.session.surface import APPEND, Pass, Plan, Surface, SurfaceFold
from everfold.session.vocabulary import MESSAGE_TYPES

FOLD_VERSION = 1
"""Raised when the same log would fold to another state; snapshots of other versions are ignored."""

END_SEED = "session/end-seed"
KEPT = frozenset(
    (
        "request/header",
        "request/context",
        "turn/start",
        "turn/end",
        "compaction/start",
        "compaction/end",
        "session/title",
        END_SEED,
    )
)
"""Log-only types whose newest event stays in memory."""


def is_inherited_marker(data: Json) -> bool:
    """Tell whether end-seed data marks the end of an inherited prefix (R155, R339)."""
    return isinstance(data, dict) and data.get("inherited") is True


def _nothing_seen() -> Mapping[str, EventLike | None]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a session's events add up to.

    Attributes:
        surface: what the model sees.
        latest: the newest event of each log-only type seen; None where it is not kept.
        inherited_cut: number of events that came with the fork; None without an inherited marker.
        last: the newest event.
    """

    surface: Surface
    latest: Mapping[str, EventLike | None] = field(default_factory=_nothing_seen)
    inherited_cut: int | None = None
    last: EventLike | None = None

    @classmethod
    def empty(cls) -> "SessionState":
        """Return the state of a log without events."""
        return cls(surface=Surface.empty())

    @property
    def next_seq(self) -> int:
        """The seq of the next event; the number of events so far."""
        return self.surface.next_seq

    @property
    def inherited_count(self) -> int:
        """Number of events that came with the fork; own events start at this seq (R161, R339)."""
        return self.inherited_cut or 0

    def check_projections(self, composition: Composition) -> None:
        """Refuse to go on with interpreters that are not those this history used.

        Raises:
            ProjectionChangedError: one was removed or exchanged (R114, R115), or one was
                registered for a type that was folded without it (V3).
        """
        definitions = composition.definitions
        for type_, used in self.surface.used.items():
            if definitions.get(type_) is not used:
                raise ProjectionChangedError(
                    f"this history was folded with the projection {type_!r} of plugin "
                    f"{used.plugin!r}, which is no longer registered; register it again or "
                    "restore the session"
                )
        # A copy: another thread may register one meanwhile.
        for type_ in tuple(definitions):
            if type_ in self.latest and type_ not in self.surface.used:
                raise ProjectionChangedError(
                    f"a projection for {type_!r} was registered after events of that type were "
                    "folded without it; restore the session"
                )


class StateFold:
    """One run of the fold from a state on; `state()` gives the value reached.

    Args:
        vocabulary_checked: whether required events of unknown types are refused (V4).
    """

    def __init__(
        self, start: SessionState, composition: Composition, *, vocabulary_checked: bool = True
    ) -> None:
        self._start = start
        self._composition = composition
        self._vocabulary_checked = vocabulary_checked
        self._known = composition.vocabulary
        self.surface = SurfaceFold(start.surface, composition)
        self._latest: dict[str, EventLike | None] | None = None
        self._inherited = start.inherited_cut
        self._last = start.last

    @property
    def next_seq(self) -> int:
        """The seq that the next event must have."""
        return self.surface.next_seq

    def interprets(self, type_: str) -> bool:
        """Tell whether a projection is in force for this event type."""
        return type_ in self._composition.definitions

    def is_plain_log_only(self, type_: str) -> bool:
        """Tell whether events of a type never reach the surface: log-only, known, interpreted by none."""
        return self._is_simple(topic_of(type_)) is False

    def check_known(self, type_: str, *, ignorable: bool) -> None:
        """Refuse a required event of an unknown type.

        Raises:
            UnknownEventError: nobody here knows it (V4).
        """
        if not ignorable and type_ not in self._known:
            raise UnknownEventError(type_, seq=self.next_seq)

    def take(self, event: EventLike) -> None:
        """Plan and apply the next event."""
        if self._vocabulary_checked:
            self.check_known(event.type, ignorable=event.ignorable)
        self.apply(event, self.surface.plan(event))

    def apply(self, event: EventLike, plan: Plan) -> None:
        """Make a planned event part of the history."""
        self.surface.apply(event, plan)
        # The plan tells, not the composition: a projection registered since it was made has not
        # interpreted this event (V3).
        if plan is not APPEND and (isinstance(plan, Pass) or event.type in KEPT):
            self._note(event)
        self._last = event

    def _note(self, event: EventLike) -> None:
        latest = self._facts()
        latest[event.type] = event if event.type in KEPT else None
        if event.type == END_SEED and is_inherited_marker(event.data):
            self._inherited = event.seq

    def _facts(self) -> dict[str, EventLike | None]:
        if self._latest is None:
            self._latest = dict(self._start.latest)
        return self._latest

    def run(self, events: Iterable[Recorded]) -> None:
        """Fold stored events; the common ones are recognised by their first bytes alone.

        Raises:
            EventSequenceError: a version is missing.
        """
        simple: dict[str, bool | None] = {}
        run: list[EventLike] = []
        seqs: list[int] = []
        surface = self.surface
        facts = self._facts()
        event: Recorded | None = None
        seq = surface.next_seq
        expected = version_of(seq)
        for event in events:
            if event.originator_version != expected:
                raise EventSequenceError(
                    f"the stream continues with version {event.originator_version} where "
                    f"{expected} is next",
                    seq=seq,
                )
            topic = event.topic
            is_message = simple.get(topic, ...)
            if is_message is ...:
                is_message = simple[topic] = self._is_simple(topic)
            if is_message is None or not event.state.startswith(PLAIN):
                surface.append_run(run, seqs)
                run, seqs = [], []
                surface.next_seq = seq
                self.take(event)
            elif is_message:
                run.append(event)
                seqs.append(seq)
            else:
                facts[topic] = event if topic in KEPT else None
            seq += 1
            expected += 1
        surface.append_run(run, seqs)
        surface.next_seq = seq
        self._last = event if event is not None else self._last

    def take_plain(self, events: Sequence[Recorded], types: Sequence[str]) -> None:
        """Make the next events, all of them plain, part of the history.

        Args:
            events: messages that are placed at the end, and events of plain log-only types.
            types: theirs.
        """
        seqs = range(self.next_seq, self.next_seq + len(events))
        are_messages = list(map(MESSAGE_TYPES.__contains__, types))
        run = list(compress(events, are_messages))
        self.surface.append_run(run, list(compress(seqs, are_messages)))
        self.surface.next_seq = seqs.stop
        newest = dict(zip(types, events, strict=True))
        for type_ in newest.keys() - MESSAGE_TYPES:
            self._facts()[type_] = newest[type_] if type_ in KEPT else None
        self._last = events[-1]

    def _is_simple(self, topic: str) -> bool | None:
        """Return True for messages, False for plain log-only types, None for all that needs a look."""
        type_ = type_of(topic)
        if type_ in MESSAGE_TYPES:
            return True
        special = type_ == END_SEED or type_ != topic or type_ in self._composition.definitions
        if special or self._composition.needs_interpreter(type_) or type_ not in self._known:
            return None
        return False

    def state(self) -> SessionState:
        """Return the state reached; the fold must not be used after it."""
        latest = self._start.latest if self._latest is None else MappingProxyType(self._latest)
        return SessionState(self.surface.surface(), latest, self._inherited, self._last)
