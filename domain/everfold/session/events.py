"""The two forms of an event: a plain record, and the stored carrier that decodes on demand.

A stored row is (stream id, version, topic, state). The topic is the event type, escaped, with a
trailing `?` when the event is ignorable; the state is JSON whose keys stand in one fixed order,
so that a fold can recognise the commonest events by their first bytes. Neither holds the stream id
or the version: a copied row stays true.
"""

import enum
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, Protocol
from urllib.parse import quote, unquote

import orjson

from everfold.session.errors import CorruptStreamError, EnvelopeError, LosslessError
from everfold.session.frozen import FrozenDict, FrozenList, Json, freeze
from everfold.session.ids import seq_of
from everfold.session.lossless import decode, encode
from everfold.session.short_streams import ShortStreamError, with_whole_stream
from everfold.session.vocabulary import MESSAGE_TYPES

CREATED_TOPIC = "session/created"
"""Topic of the first row of every stream, the header."""

PLAIN = b'{"eventId":'
"""First bytes of a state without surface fields.

A message-producing event with such a state stands at the end and cites no sources: the commonest
marker, `"surfaceOp":"append"`, is not written. Rows where it is written read the same.
"""


class Absent(enum.Enum):
    """The one value that stands for a field that is not there (null is there)."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


class EventLike(Protocol):
    """What the fold and the interpreters read of an event."""

    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def time(self) -> int: ...
    @property
    def data(self) -> Json: ...
    @property
    def surface_op(self) -> Json | Literal[Absent.ABSENT]: ...
    @property
    def source_event_seqs(self) -> Json | Literal[Absent.ABSENT]: ...
    @property
    def ignorable(self) -> bool: ...
    @property
    def is_plain_append(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Event:
    """An event record as lists, files and callers hold it (field reference, section 1)."""

    type: str
    seq: int
    data: Json
    time: int = 0
    surface_op: Json | Literal[Absent.ABSENT] = ABSENT
    source_event_seqs: Json | Literal[Absent.ABSENT] = ABSENT
    ignorable: bool = False

    @classmethod
    def of(cls, record: Json) -> "Event":
        """Return the event of a record with the wire's field names; no field but `type` is checked.

        Raises:
            EnvelopeError: not an object whose type is text (R3, R4).
        """
        if not isinstance(record, Mapping) or not isinstance(record.get("type"), str):
            raise EnvelopeError("an event is an object whose type is text")
        return cls(
            type=record["type"],
            seq=record.get("seq", -1),
            data=record.get("data"),
            time=record.get("time", 0),
            surface_op=record.get("surfaceOp", ABSENT),
            source_event_seqs=record.get("sourceEventSeqs", ABSENT),
            ignorable=record.get("ignorable", False) is True,
        )

    @property
    def is_plain_append(self) -> bool:
        """Whether the event is placed at the end and cites no sources."""
        return self.surface_op == "append" and self.source_event_seqs is ABSENT

    def record(self) -> dict[str, Json]:
        """Return the record with the wire's field names."""
        return _record(self, self.time)


class Recorded:
    """A stored event: four stored fields, everything else decoded when asked for.

    Attributes:
        originator_id: the stream.
        originator_version: position in it, from 1 (the header).
        topic: escaped event type, `?` at the end when ignorable.
        state: the stored bytes; never written again.
    """

    __slots__ = (
        "__weakref__",
        "_data",
        "_message",
        "originator_id",
        "originator_version",
        "state",
        "topic",
    )

    def __init__(
        self, originator_id: str, originator_version: int, topic: str, state: bytes
    ) -> None:
        self.originator_id = originator_id
        self.originator_version = originator_version
        self.topic = topic
        self.state = state
        self._data: weakref.ref[FrozenDict | FrozenList] | None = None
        self._message: weakref.ref[FrozenDict] | None = None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Recorded)
            and self.originator_id == other.originator_id
            and self.originator_version == other.originator_version
            and self.topic == other.topic
            and self.state == other.state
        )

    def __hash__(self) -> int:
        return hash((self.originator_id, self.originator_version))

    def __repr__(self) -> str:
        return f"<Recorded {self.originator_id!r} seq {self.seq} {self.topic}>"

    @property
    def seq(self) -> int:
        """Position among the session's events, from 0; -1 for the header."""
        return seq_of(self.originator_version)

    @property
    def type(self) -> str:
        """The event type."""
        return type_of(self.topic)

    @property
    def ignorable(self) -> bool:
        """Whether a reader that does not know the type may pass over it."""
        return self.topic.endswith("?")

    @property
    def is_plain_append(self) -> bool:
        """Whether the event is placed at the end and cites no sources; nothing is decoded."""
        return self.state.startswith(PLAIN) and self.type in MESSAGE_TYPES

    @property
    def data(self) -> Json:
        """The payload, frozen; it and its message are the same objects for as long as somebody holds them."""
        value = self._data() if self._data is not None else None
        if value is not None:
            return value
        payload = self.envelope()["data"]
        held = self._message() if self._message is not None else None
        if held is not None:
            payload["message"] = held
        payload = freeze(payload)
        if isinstance(payload, (FrozenDict, FrozenList)):
            self._data = weakref.ref(payload)
            self._remember_message(payload)
        return payload

    def _remember_message(self, payload: FrozenDict | FrozenList) -> None:
        """Keep track of the message inside the payload: readers hold that, and not the payload (R128)."""
        message = payload.get("message") if isinstance(payload, FrozenDict) else None
        if isinstance(message, FrozenDict):
            self._message = weakref.ref(message)

    @property
    def message(self) -> Json | None:
        """The object `message` of the payload, frozen; None if it has none. No stream is decoded for it."""
        whole = self._data() if self._data is not None else None
        held = self._message() if self._message is not None else None
        if held is None:
            payload = self._stored()["data"] if whole is None else whole
            message = payload.get("message") if isinstance(payload, Mapping) else None
            held = freeze(message) if isinstance(message, Mapping) else None
            self._message = None if held is None else weakref.ref(held)
        return held

    @property
    def time(self) -> int:
        """When the event was decided, in milliseconds since 1970 UTC."""
        return int(self._stored()["time"])

    @property
    def surface_op(self) -> Json | Literal[Absent.ABSENT]:
        """The placement marker."""
        return self._surface_op(self._stored())

    @property
    def source_event_seqs(self) -> Json | Literal[Absent.ABSENT]:
        """The seqs of the events that this one was made from."""
        if self.state.startswith(PLAIN):
            return ABSENT
        return self._stored().get("sourceEventSeqs", ABSENT)

    def _surface_op(self, envelope: Mapping[str, Json]) -> Json | Literal[Absent.ABSENT]:
        implied = "append" if self.type in MESSAGE_TYPES else ABSENT
        return envelope.get("surfaceOp", implied)

    @property
    def event_id(self) -> str:
        """The id by which a repeated commit is recognised; unique within the stream."""
        return str(self._stored()["eventId"])

    def envelope(self) -> dict[str, Json]:
        """Return all that the state holds, decoded anew; a stream that is stored short is whole in it.

        Raises:
            CorruptStreamError: it is not JSON, or not an event's; the error names session and seq.
        """
        value = self._stored()
        try:
            value["data"] = with_whole_stream(self.type, value["data"])
        except ShortStreamError as error:
            reason = f"its stream cannot be put together: {error}"
            raise CorruptStreamError(self.originator_id, self.seq, reason) from error
        return value

    def _stored(self) -> dict[str, Json]:
        """Return what the state holds, with a short stream as it is written there."""
        try:
            value = decode(self.state)
        except LosslessError as error:
            raise CorruptStreamError(self.originator_id, self.seq, str(error)) from error
        if not isinstance(value, dict) or "data" not in value:
            reason = "the stored state is not an event envelope"
            raise CorruptStreamError(self.originator_id, self.seq, reason)
        return value

    def content(self) -> bytes:
        """Return the stored bytes from the payload on: equal for two decisions of the same payload."""
        return self.state[self.state.index(b',"data":') :]

    def record(self) -> dict[str, Json]:
        """Return the event as a record with the wire's field names."""
        envelope = self.envelope()
        event = Event(
            type=self.type,
            seq=self.seq,
            data=envelope["data"],
            surface_op=self._surface_op(envelope),
            source_event_seqs=envelope.get("sourceEventSeqs", ABSENT),
            ignorable=self.ignorable,
        )
        return _record(event, envelope["time"])


@dataclass(frozen=True, slots=True)
class Origin:
    """Who decided an event and why, kept beside its payload."""

    actor: str | None = None
    correlation_id: str | None = None

    def fragment(self) -> bytes:
        """Return the JSON members to be written after the time.

        Raises:
            LosslessError: a text that is not valid Unicode.
        """
        parts = b""
        if self.actor is not None:
            parts += b',"actor":' + encode(self.actor, "actor")[0]
        if self.correlation_id is not None:
            parts += b',"correlationId":' + encode(self.correlation_id, "correlation id")[0]
        return parts


NO_ORIGIN = Origin()


def state_bytes(
    data: bytes,
    *,
    event_id: str,
    time_ms: int,
    placement: bytes = b"",
    origin: bytes = b"",
) -> bytes:
    """Return the state of a row.

    Args:
        data: the encoded payload.
        event_id: plain text.
        placement: `"surfaceOp":…,` and `"sourceEventSeqs":…,` members, in that order, or nothing.
        origin: members after the time, each with its leading comma.
    """
    return b'{%b"eventId":%b,"time":%d%b,"data":%b}' % (
        placement,
        orjson.dumps(event_id),
        time_ms,
        origin,
        data,
    )


PLAIN_PLACEMENT = b""
"""The members of an event that is placed at the end and cites no sources: none."""


def placement_bytes(
    type_: str,
    surface_op: Json | Literal[Absent.ABSENT],
    sources: Json | Literal[Absent.ABSENT],
) -> bytes:
    """Return the members that place an event on the surface, as `state_bytes` wants them.

    An opaque event (R46) may carry any values in them, and one without the other.
    """
    if surface_op == "append" and sources is ABSENT and type_ in MESSAGE_TYPES:
        return PLAIN_PLACEMENT
    placement = b""
    if surface_op is not ABSENT:
        placement += b'"surfaceOp":%b,' % orjson.dumps(surface_op)
    if sources is not ABSENT:
        placement += b'"sourceEventSeqs":%b,' % orjson.dumps(sources)
    return placement


@lru_cache(maxsize=1024)
def topic_of(type_: str, *, ignorable: bool = False) -> str:
    """Return the topic of an event type: `?`, `@`, `%`, controls and non-ASCII are escaped."""
    topic = quote(type_, safe="/.:_-~ +")
    return topic + "?" if ignorable else topic


def topics_of(*types: str) -> tuple[str, ...]:
    """Return the topics of event types: of each the required form, then the ignorable one.

    Whoever looks rows up by topic wants both: a known type means the same with `?` as without (R48).

    Raises:
        LosslessError: a type is not valid Unicode, so that no event can have it.
    """
    for type_ in types:
        encode(type_, "type")
    return tuple(topic_of(type_, ignorable=each) for type_ in types for each in (False, True))


@lru_cache(maxsize=1024)
def type_of(topic: str) -> str:
    """Return the event type that a topic names."""
    if topic.isascii() and "%" not in topic and "?" not in topic and "@" not in topic:
        return topic
    return unquote(topic.removesuffix("?").partition("@")[0])


def _record(event: Event, time_ms: int) -> dict[str, Json]:
    record: dict[str, Json] = {
        "type": event.type,
        "seq": event.seq,
        "time": time_ms,
        "data": event.data,
    }
    if event.surface_op is not ABSENT:
        record["surfaceOp"] = event.surface_op
    if event.source_event_seqs is not ABSENT:
        record["sourceEventSeqs"] = event.source_event_seqs
    if event.ignorable:
        record["ignorable"] = True
    return record
