"""The session aggregate: public methods decide and refuse, what they decided is applied as planned."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from everfold.session.bulk import decide_together
from everfold.session.composition import Composition
from everfold.session.conversation import Conversation, ConversationCache
from everfold.session.deciding import AppendEvent, Decider, DecisionMeans, Stamp
from everfold.session.errors import EventSequenceError
from everfold.session.events import (
    CREATED_TOPIC,
    NO_ORIGIN,
    EventLike,
    Origin,
    Recorded,
    state_bytes,
)
from everfold.session.frozen import FrozenDict, Json, freeze
from everfold.session.growing import Growing
from everfold.session.ids import HEADER_VERSION, SessionId, session_id, version_of
from everfold.session.lossless import encode
from everfold.session.session_header import check_header
from everfold.session.state import KEPT, SessionState, StateFold


@dataclass(frozen=True, slots=True)
class Decision:
    """A batch that was judged: what to store, and the state once it is stored."""

    events: tuple[Recorded, ...]
    state: SessionState


class Session:
    """One session: an aggregate of the `eventsourcing` library, in its functional style.

    `append` decides and stages; `collect_events` hands the staged events to whoever stores them.
    Or `decide` gives a `Decision`, and `accept` makes it part of the session once it is stored;
    a decision that is dropped leaves nothing behind. Not for use from several threads at once.
    """

    def __init__(
        self,
        header: Mapping[str, Json],
        composition: Composition,
        means: DecisionMeans,
        *,
        state: SessionState | None = None,
        cache: ConversationCache | None = None,
    ) -> None:
        self.header: Mapping[str, Json] = (
            header if isinstance(header, FrozenDict) else freeze(dict(header))
        )
        self.composition = composition
        self.means = means
        self._state = SessionState.empty() if state is None else state
        self._pending: list[Recorded] = []
        self._cache = ConversationCache() if cache is None else cache
        self.first_live_seq = self._state.next_seq
        """The seq after the events that were there when this object was made (R157)."""

    @classmethod
    def create(
        cls, header: Mapping[str, Json], composition: Composition, means: DecisionMeans
    ) -> "Session":
        """Return a new, empty session whose header waits to be stored.

        Raises:
            SessionHeaderError: the header is invalid.
            IdError: its id cannot be one.
        """
        checked = check_header(header, session_id(header.get("id")))
        session = cls(checked, composition, means)
        session._pending.append(created_event(checked, means))
        return session

    # What it is.

    @property
    def id(self) -> SessionId:
        """The session id; also the id of its stream."""
        return SessionId(self.header["id"])

    @property
    def version(self) -> int:
        """The stream version reached, staged events included; the header alone is 1."""
        return version_of(self.next_seq) - 1

    @property
    def next_seq(self) -> int:
        """The seq that the next event gets; the number of events so far."""
        return self._state.next_seq

    @property
    def state(self) -> SessionState:
        """The folded state, staged events included; a value."""
        return self._state

    @property
    def inherited_count(self) -> int:
        """How many events came with the fork; own events start at this seq (R161)."""
        return self._state.inherited_count

    # What the model sees. These refuse when interpreters have changed (R114, V3).

    @property
    def nodes(self) -> Growing[int]:
        """The seqs of the current nodes in surface order.

        Raises:
            ProjectionChangedError: the interpreters in force are not those of this history.
        """
        return self._read().surface.nodes

    @property
    def replace_generation(self) -> int:
        """The number of replacements so far (R74)."""
        return self._read().surface.replace_generation

    @property
    def content_generation(self) -> int:
        """The number of replacements and projection events so far (R75)."""
        return self._read().surface.content_generation

    def messages(self) -> Conversation:
        """Return what the model sees, in order; a value that later events do not change (R87, R88).

        Raises:
            ProjectionChangedError: the interpreters in force are not those of this history.
        """
        return self._cache.derive(self._read().surface)

    def event(self, seq: int) -> EventLike | None:
        """Return the message-producing event with this seq, on the surface or hidden, else None."""
        return self._state.surface.events.find(seq)

    def latest(self, type_: str) -> EventLike | None:
        """Return the newest event of a log-only type that stays in memory, None if there is none.

        Raises:
            ValueError: the type is not one of `state.KEPT`; its events are read from the log.
        """
        if type_ not in KEPT:
            kept = ", ".join(sorted(KEPT))
            raise ValueError(f"{type_!r} is not kept in memory, read the log; kept are {kept}")
        return self._state.latest.get(type_)

    @property
    def is_turn_open(self) -> bool:
        """Whether the last turn boundary is a start (R169)."""
        start, end = self.latest("turn/start"), self.latest("turn/end")
        return start is not None and (end is None or end.seq < start.seq)

    def _read(self) -> SessionState:
        self._state.check_projections(self.composition)
        return self._state

    # Deciding.

    def decide(self, batch: Sequence[AppendEvent], *, origin: Origin = NO_ORIGIN) -> Decision:
        """Judge a batch as a whole against this history; the session does not change.

        Raises:
            SessionError: one event may not be appended here; its code says why (R137, V1).
        """
        state = self._read()
        fold = StateFold(state, self.composition)
        stamp = Stamp(self.means, origin)
        events = decide_together(self.id, batch, fold, self.means, stamp)
        if events is None:
            decider = Decider(self.id, fold, self.means, stamp, self.header["isSeeded"])
            events = tuple(decider.decide(command) for command in batch)
        return Decision(events, fold.state())

    def accept(self, decision: Decision) -> None:
        """Make a stored decision part of this session; an empty one is nothing."""
        if not decision.events:
            return
        if decision.events[0].seq != self._state.next_seq:
            raise EventSequenceError(
                f"the decision was made at seq {decision.events[0].seq}, "
                f"the session is at {self._state.next_seq}"
            )
        self._state = decision.state

    def append(
        self,
        type_: str,
        data: Json,
        options: Mapping[str, Json] | None = None,
        *,
        event_id: str | None = None,
        origin: Origin = NO_ORIGIN,
    ) -> Recorded:
        """Decide one event and stage it in this object alone, for `collect_events`; nothing is stored.

        To store an event in a session that a host keeps, call `append` of its `Sessions`.

        Args:
            options: `surfaceOp` and `sourceEventSeqs` for messages, `ignorable` for others (R133).
            event_id: the caller's own id, by which a repeated append is recognised.

        Raises:
            SessionError: it may not be appended here; nothing changed (R141).
        """
        command = AppendEvent(type_, data, options, event_id)
        return self.append_batch((command,), origin=origin)[0]

    def append_batch(
        self, batch: Sequence[AppendEvent], *, origin: Origin = NO_ORIGIN
    ) -> tuple[Recorded, ...]:
        """Decide several events as one batch, all or none, and stage them, as `append` does."""
        decision = self.decide(batch, origin=origin)
        self.accept(decision)
        self._pending.extend(decision.events)
        return decision.events

    def collect_events(self) -> Sequence[Recorded]:
        """Return the staged events, once; the caller stores them."""
        pending, self._pending = self._pending, []
        return pending

    # Following what others stored.

    def catch_up(self, events: Iterable[Recorded]) -> None:
        """Fold events that others stored after this session's version; costs the tail alone.

        Raises:
            ProjectionChangedError: the interpreters in force are not those of this history.
        """
        fold = StateFold(self._read(), self.composition)
        fold.run(events)
        self._state = fold.state()


def created_event(header: Mapping[str, Json], means: DecisionMeans) -> Recorded:
    """Return the first row of a stream; the id is not in it, so that a copied row stays true.

    Raises:
        TooLargeError: the header is over the cap of an event.
    """
    stored = {name: value for name, value in header.items() if name != "id"}
    data, _copy = encode(stored, "header")
    state = state_bytes(data, event_id=means.new_id(), time_ms=int(header["createdAt"]))
    means.check_size(len(CREATED_TOPIC) + len(state))
    return Recorded(str(header["id"]), HEADER_VERSION, CREATED_TOPIC, state)


def header_of(created: Recorded) -> dict[str, Json]:
    """Return the session header that the first row of a stream holds, checked.

    Raises:
        SessionHeaderError: it is not a header.
    """
    stored = created.data
    fields = dict(stored) if isinstance(stored, Mapping) else {}
    return check_header({**fields, "id": created.originator_id}, created.originator_id)
