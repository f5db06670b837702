"""Deciding one event of a batch: every check of V1, in the order of R137, and the stored bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from types import MappingProxyType
from typing import Literal

from everfold.session.envelope import check_intent
from everfold.session.errors import IdError, SeedCutError, TooLargeError
from everfold.session.events import (
    ABSENT,
    PLAIN_PLACEMENT,
    Absent,
    Event,
    Origin,
    Recorded,
    placement_bytes,
    state_bytes,
    topic_of,
)
from everfold.session.frozen import Json, freeze
from everfold.session.ids import version_of
from everfold.session.lossless import encode, whole
from everfold.session.payload import check_payload
from everfold.session.ports import Clock, NewId
from everfold.session.short_streams import stored_form
from everfold.session.state import END_SEED, StateFold, is_inherited_marker
from everfold.session.surface import APPEND, PASS, Plan

MAX_EVENT_BYTES = 16 * 1024 * 1024
MAX_EVENT_ID_BYTES = 200


@dataclass(frozen=True, slots=True)
class DecisionMeans:
    """What deciding needs besides the history.

    Attributes:
        clock: gives the time of a decided event, in milliseconds since 1970 UTC.
        new_id: gives fresh event ids.
        max_event_bytes: cap of one event's stored bytes.
    """

    clock: Clock
    new_id: NewId
    max_event_bytes: int = MAX_EVENT_BYTES

    def check_size(self, size_bytes: int, seq: int | None = None) -> None:
        """Refuse a row whose topic and state take more than the cap.

        Raises:
            TooLargeError: they do.
        """
        if size_bytes > self.max_event_bytes:
            raise TooLargeError(size_bytes, self.max_event_bytes, seq=seq)


@dataclass(frozen=True, slots=True)
class AppendEvent:
    """The wish to append one event.

    Attributes:
        data: any JSON value; it is copied. Nobody may change it while it is being decided.
        options: `surfaceOp` and `sourceEventSeqs` for messages, `ignorable` for others (R133).
        event_id: the caller's own id of the event; a fresh one if None.
    """

    type: str
    data: Json
    options: Mapping[str, Json] | None = None
    event_id: str | None = None


def message(type_: str, data: Json, *, event_id: str | None = None) -> AppendEvent:
    """Return the wish to put a message at the end of the surface."""
    return AppendEvent(type_, data, APPEND_OPTIONS, event_id)


def replacement(type_: str, data: Json, *, start: int, end: int, sources: list[int]) -> AppendEvent:
    """Return the wish to put a message in the place of the nodes `start` to `end`."""
    marker = {"op": "replace", "startSeq": start, "endSeq": end}
    return AppendEvent(type_, data, {"surfaceOp": marker, "sourceEventSeqs": sources})


APPEND_OPTIONS: Mapping[str, Json] = MappingProxyType({"surfaceOp": "append"})
"""The options of a message that is put at the end and cites no sources."""


class Stamp:
    """What the events of one batch share: the time, the origin, and the ids made for them.

    Attributes:
        time_ms: when the batch was decided, in milliseconds since 1970 UTC.
    """

    def __init__(self, means: DecisionMeans, origin: Origin) -> None:
        self.time_ms = means.clock()
        self._origin = origin.fragment()
        self._batch_id = means.new_id()

    def state(self, data: bytes, placement: bytes, event_id: str | None, number: int) -> bytes:
        """Return the stored bytes of an event.

        Args:
            event_id: the caller's own; one made of the batch's id if None.
            number: which of the events without an own id this is, from 1.

        Raises:
            IdError: the caller's id is none.
        """
        own = self._made_id(number) if event_id is None else checked_event_id(event_id)
        return state_bytes(
            data,
            event_id=own,
            time_ms=self.time_ms,
            placement=placement,
            origin=self._origin,
        )

    def states(self, forms: Sequence[bytes], event_ids: Sequence[str | None]) -> list[bytes]:
        """Return the stored bytes of events that are placed at the end, or not at all.

        Raises:
            IdError: a caller's id is none.
        """
        if event_ids.count(None) < len(event_ids):
            counts = accumulate(event_id is None for event_id in event_ids)
            return list(map(self.state, forms, repeat(PLAIN_PLACEMENT), event_ids, counts))
        first = self.state(b"", PLAIN_PLACEMENT, None, 1)
        start, quote, rest = first.partition(b'","time":')
        middle = quote + rest[:-1]
        return [start + middle + forms[0] + b"}"] + [
            b"".join((start, b".%d" % number, middle, form, b"}"))
            for number, form in enumerate(forms[1:], 2)
        ]

    def _made_id(self, number: int) -> str:
        return self._batch_id if number == 1 else f"{self._batch_id}.{number}"


@dataclass(slots=True)
class Decider:
    """Decides the events of one batch, one after another, on a running fold.

    Attributes:
        is_seeded: what the session's header says.
    """

    session_id: str
    fold: StateFold
    means: DecisionMeans
    stamp: Stamp
    is_seeded: bool
    _without_id: int = field(init=False, default=0)
    _log_only: dict[str, bool] = field(init=False, default_factory=dict)

    def decide(self, command: AppendEvent) -> Recorded:
        """Judge a wish as the next event, make it part of the fold, and return it as stored."""
        type_ = command.type
        surface_op, sources, ignorable = check_intent(type_, command.options)
        data, copy = encode(command.data)
        is_plain = surface_op == "append" and sources is ABSENT
        is_bare = is_plain or surface_op is sources is ABSENT
        placement = PLAIN_PLACEMENT if is_bare else self._placement(type_, surface_op, sources)
        seq = self.fold.next_seq
        is_ignorable = ignorable is True
        self.fold.check_known(type_, ignorable=is_ignorable)
        check_payload(type_, copy, seq)
        if type_ == END_SEED and not self.is_seeded and is_inherited_marker(copy):
            raise SeedCutError("a session that is no fork inherits nothing to mark", seq=seq)
        if is_plain:
            plan: Plan = APPEND
        elif self._is_log_only(type_):
            plan = PASS
        else:
            event = Event(
                type=type_,
                seq=seq,
                data=freeze(copy) if self.fold.interprets(type_) else copy,
                time=self.stamp.time_ms,
                surface_op=surface_op,
                source_event_seqs=sources,
                ignorable=is_ignorable,
            )
            plan = self.fold.surface.plan(event)
        topic = topic_of(type_, ignorable=is_ignorable)
        state = self._state(stored_form(type_, data, copy), placement, command.event_id)
        self.means.check_size(len(topic) + len(state), seq)
        recorded = Recorded(self.session_id, version_of(seq), topic, state)
        self.fold.apply(recorded, plan)
        return recorded

    def _is_log_only(self, type_: str) -> bool:
        """Tell whether a type's events leave the surface as it is; looked up once for a batch."""
        known = self._log_only.get(type_)
        if known is None:
            known = self._log_only[type_] = self.fold.is_plain_log_only(type_)
        return known

    def _placement(
        self,
        type_: str,
        surface_op: Json | Literal[Absent.ABSENT],
        sources: Json | Literal[Absent.ABSENT],
    ) -> bytes:
        if surface_op is not ABSENT:
            encode(surface_op, "surfaceOp")
        if sources is not ABSENT:
            encode(sources, "sourceEventSeqs")
        return placement_bytes(type_, _whole_numbers(surface_op), _whole_numbers(sources))

    def _state(self, data: bytes, placement: bytes, event_id: str | None) -> bytes:
        self._without_id += event_id is None
        return self.stamp.state(data, placement, event_id, self._without_id)


def checked_event_id(event_id: object) -> str:
    """Return a caller's event id.

    Raises:
        IdError: not text of 1 to 200 bytes of valid Unicode.
    """
    if not isinstance(event_id, str) or not event_id:
        raise IdError(event_id, "an event id is text of at least one character")
    try:
        size = len(event_id.encode())
    except UnicodeEncodeError:
        raise IdError(event_id, "it holds a lone surrogate") from None
    if size > MAX_EVENT_ID_BYTES:
        raise IdError(event_id, f"it is {size} bytes long, {MAX_EVENT_ID_BYTES} is the most")
    return event_id


def _whole_numbers(value: Json) -> Json:
    """Return a marker or a source list with `3.0` written as `3`."""
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    number = whole(value)
    return value if number is None else number
