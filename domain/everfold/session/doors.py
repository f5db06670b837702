"""The doors for events that come from outside: a seed, and a stored log that is adopted (group J).

Everything is checked once, here: JSON, envelope, payload, message shape, vocabulary, surface and
projections. What comes out is a new session whose rows wait to be stored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.envelope import check_record
from everfold.session.errors import SeedCutError, SessionError
from everfold.session.events import (
    ABSENT,
    Event,
    Recorded,
    placement_bytes,
    state_bytes,
    topic_of,
)
from everfold.session.frozen import Json, freeze
from everfold.session.ids import session_id, version_of
from everfold.session.lossless import encode
from everfold.session.payload import check_payload
from everfold.session.placement import Replace, placement_of
from everfold.session.session import Session, created_event
from everfold.session.session_header import check_header
from everfold.session.short_streams import stored_form
from everfold.session.state import END_SEED, SessionState, StateFold
from everfold.session.vocabulary import MESSAGE_TYPES


@dataclass(frozen=True, slots=True)
class Adopted:
    """A session made from outside events.

    Attributes:
        session: with all that was taken over, and the markers that were added.
        rows: every row to store, header first.
        added: the events that the door itself appended (R154 to R160).
    """

    session: Session
    rows: tuple[Recorded, ...]
    added: tuple[Recorded, ...]


def seed(
    header: Mapping[str, Json],
    records: Iterable[Mapping[str, Json]],
    composition: Composition,
    means: DecisionMeans,
    *,
    inherited_count: int | None = None,
) -> Adopted:
    """Return a new session made from copied events.

    Args:
        records: event records with the wire's field names, from seq 0 on.
        inherited_count: length of the prefix that a fork inherits; it must be the whole seed
            (R159). None for a session that inherits nothing.

    Raises:
        SessionError: an event, then the header, or the cut is refused (R11, R149).
    """
    state, rows = _take(_id_of(header), records, composition, means, _copied)
    checked, created = _header(header, means)
    is_fork = checked["isSeeded"]
    count = state.next_seq if is_fork and inherited_count is None else inherited_count or 0
    _check_cut(is_fork, count, state.next_seq)
    if is_fork and count != state.next_seq:
        raise SeedCutError(f"a fork inherits its whole seed of {state.next_seq}, not {count}")
    session = Session(checked, composition, means, state=replace(state, inherited_cut=None))
    return _mark(session, (created, *rows), is_fork=is_fork)


def restore(
    header: Mapping[str, Json],
    records: Iterable[Mapping[str, Json]],
    composition: Composition,
    means: DecisionMeans,
    *,
    inherited_count: int | None = None,
) -> Adopted:
    """Return the session of a stored log that is adopted; a plain end-of-seed marker is added (R160).

    Args:
        inherited_count: the stored cut; found in the log if None (R339).

    Raises:
        SessionError: the header, an event, or the cut is refused (R149).
    """
    checked, created = _header(header, means)
    state, rows = _take(checked["id"], records, composition, means, _adopted)
    if inherited_count is None:
        check_inherited_cut(checked, state)
    count = state.inherited_count if inherited_count is None else inherited_count
    _check_cut(checked["isSeeded"], count, state.next_seq)
    session = Session(checked, composition, means, state=replace(state, inherited_cut=count))
    return _mark(session, (created, *rows), is_fork=False)


def resume_marker(session: Session) -> tuple[Recorded, ...]:
    """Stage the marker that a process which takes a session over appends; none if it is there (R156).

    It frees a compaction lock that was left open (R162).
    """
    last = session.state.last
    if last is not None and last.type == END_SEED:
        return ()
    return (session.append(END_SEED, {}),)


def check_inherited_cut(header: Mapping[str, Json], state: SessionState) -> None:
    """Refuse a stored log whose header and inherited marker do not go together (R339).

    Raises:
        SeedCutError: a seeded header without a marker, or a marker under an unseeded one.
    """
    marked = state.inherited_cut is not None
    if header["isSeeded"] and not marked:
        raise SeedCutError("the header says isSeeded, but no end-seed marker says inherited")
    if marked and not header["isSeeded"]:
        raise SeedCutError("an end-seed marker says inherited, but the header is not isSeeded")


def _check_cut(is_seeded: bool, count: int, length: int) -> None:
    if not is_seeded and count != 0:
        raise SeedCutError(f"a session that is not seeded cannot inherit {count} events")
    if not 0 <= count <= length:
        raise SeedCutError(f"{count} inherited events are more than the log's {length}")


def _id_of(header: object) -> str:
    return str(header.get("id")) if isinstance(header, Mapping) else ""


def _header(header: object, means: DecisionMeans) -> tuple[dict[str, Json], Recorded]:
    """Return a checked header, and the row that holds it."""
    checked = check_header(header, _id_of(header))
    session_id(checked["id"])
    return checked, created_event(checked, means)


def _take(
    stream_id: str,
    records: Iterable[Mapping[str, Json]],
    composition: Composition,
    means: DecisionMeans,
    read: Callable[[object, str], Event],
) -> tuple[SessionState, list[Recorded]]:
    fold = StateFold(SessionState.empty(), composition)
    batch = means.new_id()
    rows = []
    for index, record in enumerate(records):
        try:
            event = read(record, f"event {index}")
            rows.append(_take_one(stream_id, index, event, fold, means, batch))
        except SessionError as error:
            # By its place, not by what it says of itself (R12).
            error.seq = index
            error.add_note(f"event {index} of the seed")
            raise
    return fold.state(), rows


def _take_one(
    stream_id: str,
    index: int,
    event: Event,
    fold: StateFold,
    means: DecisionMeans,
    batch: str,
) -> Recorded:
    fold.check_known(event.type, ignorable=event.ignorable)
    check_payload(event.type, event.data, event.seq)
    plan = fold.surface.plan(_frozen(event, fold))
    event_id = f"{batch}.{index + 1}"
    recorded = recorded_of(event, stream_id, event_id)
    # The id is not counted: an append let the event in with one of its own (V1).
    means.check_size(len(recorded.topic) + len(recorded.state) - len(event_id), event.seq)
    fold.apply(recorded, plan)
    return recorded


def _copied(record: object, where: str) -> Event:
    """Read a record of a seed: the copy, so its JSON, comes before the envelope (R11).

    Its data may be as deeply nested as an append's (V1).
    """
    if not isinstance(record, Mapping):
        encode(record, where)
        return check_record(record, where)
    fields = {name: value for name, value in record.items() if name != "data"}
    _bytes, copy = encode(fields, where)
    if "data" in record:
        copy["data"] = encode(record["data"], f"{where}.data")[1]
    return check_record(copy, where)


def _adopted(record: object, where: str) -> Event:
    """Read a record of a stored log: adopted as it is, so its envelope comes first (R11, R148).

    The JSON of the data is checked all the same (V1); that of a message's placement by the surface
    rules, which name it better.
    """
    plain = dict(record) if isinstance(record, Mapping) else record
    event = check_record(plain, where)
    encode(event.type, f"{where}.type")
    data = encode(event.data, f"{where}.data")[1]
    if event.type not in MESSAGE_TYPES:
        for name, value in (
            ("surfaceOp", event.surface_op),
            ("sourceEventSeqs", event.source_event_seqs),
        ):
            if value is not ABSENT:
                encode(value, f"{where}.{name}")
    return replace(event, data=data)


def _frozen(event: Event, fold: StateFold) -> Event:
    if not fold.interprets(event.type):
        return event
    return replace(event, data=freeze(event.data))


def recorded_of(event: Event, session_id: str, event_id: str) -> Recorded:
    """Return a checked event as it is stored."""
    data, copy = encode(event.data)
    data = stored_form(event.type, data, copy)
    state = state_bytes(
        data, event_id=event_id, time_ms=event.time, placement=_placement_bytes(event)
    )
    topic = topic_of(event.type, ignorable=event.ignorable)
    return Recorded(session_id, version_of(event.seq), topic, state)


def _placement_bytes(event: Event) -> bytes:
    if event.type not in MESSAGE_TYPES:
        return placement_bytes(event.type, event.surface_op, event.source_event_seqs)
    place = placement_of(event)
    return placement_bytes(event.type, _marker(place), _sources(event.source_event_seqs))


def _marker(place: Replace | None) -> Json:
    if place is None:
        return "append"
    return {"op": "replace", "startSeq": place.start, "endSeq": place.end}


def _sources(sources: Json) -> Json:
    return sources if sources is ABSENT else [int(seq) for seq in sources]


def _mark(session: Session, rows: Sequence[Recorded], *, is_fork: bool) -> Adopted:
    added = (session.append(END_SEED, {"inherited": True}),) if is_fork else resume_marker(session)
    session.collect_events()
    return Adopted(session, (*rows, *added), added)
