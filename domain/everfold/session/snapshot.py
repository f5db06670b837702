"""Snapshots of a folded state: small, named after what made them, and ignored when that differs.

A snapshot holds seqs and projected messages, never the stored messages: those are fetched from
the log when somebody reads them.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import orjson

from everfold.session.book import EventBook, Fetch
from everfold.session.composition import Composition
from everfold.session.events import Recorded
from everfold.session.frozen import Json, freeze
from everfold.session.growing import Growing
from everfold.session.ids import version_of
from everfold.session.ports import StoredSnapshot
from everfold.session.state import FOLD_VERSION, SessionState
from everfold.session.surface import Surface

FetchRows = Callable[[Sequence[int]], Sequence[Recorded]]
"""Reads the events with exactly these seqs, of any type."""


def snapshot_topic(composition: Composition) -> str:
    """Return the topic of snapshots that this fold and composition make and trust."""
    return f"snapshot/{FOLD_VERSION}/{composition.identity()}"


def take_snapshot(stream_id: str, state: SessionState, composition: Composition) -> StoredSnapshot:
    """Return a snapshot of a state whose events are all stored."""
    surface = state.surface
    body = {
        "nextSeq": state.next_seq,
        "nodes": list(surface.nodes),
        "messages": [[seq, message] for seq, message in surface.messages.items()],
        "replaceGeneration": surface.replace_generation,
        "contentGeneration": surface.content_generation,
        "used": sorted(surface.used),
        "latest": {type_: event and event.seq for type_, event in state.latest.items()},
        "inheritedCut": state.inherited_cut,
    }
    return StoredSnapshot(
        stream_id=stream_id,
        version=version_of(state.next_seq - 1),
        topic=snapshot_topic(composition),
        state=zlib.compress(orjson.dumps(body), level=1),
    )


def state_of(
    snapshot: StoredSnapshot, composition: Composition, fetch: Fetch, fetch_rows: FetchRows
) -> SessionState | None:
    """Return the state that a snapshot holds, None if it does not fit and must not be trusted.

    Args:
        fetch: reads message-producing events when they are first looked at.
        fetch_rows: reads the few log-only events that a state keeps, now.
    """
    if snapshot.topic != snapshot_topic(composition):
        return None
    try:
        return _state(snapshot, composition, fetch, fetch_rows)
    except _UNREADABLE:
        return None


_UNREADABLE = (zlib.error, KeyError, TypeError, ValueError, AttributeError)
"""What reading a damaged or foreign body ends in; no snapshot is worth more than a fold."""


def _body(snapshot: StoredSnapshot) -> Mapping[str, Json]:
    body: Mapping[str, Json] = orjson.loads(zlib.decompress(snapshot.state))
    if version_of(body["nextSeq"] - 1) != snapshot.version:
        raise ValueError("the snapshot is of another version than its row says")
    return body


def _state(
    snapshot: StoredSnapshot, composition: Composition, fetch: Fetch, fetch_rows: FetchRows
) -> SessionState:
    body = _body(snapshot)
    next_seq = body["nextSeq"]
    surface = Surface(
        events=EventBook(
            Growing(), complete_from=next_seq, fetch=fetch, stream_id=snapshot.stream_id
        ),
        nodes=Growing.adopt(body["nodes"]),
        messages=MappingProxyType({seq: freeze(message) for seq, message in body["messages"]}),
        replace_generation=body["replaceGeneration"],
        content_generation=body["contentGeneration"],
        used=MappingProxyType({type_: composition.definitions[type_] for type_ in body["used"]}),
        next_seq=next_seq,
    )
    wanted = {
        seq for seq in (*body["latest"].values(), next_seq - 1) if seq is not None and seq >= 0
    }
    rows = {row.seq: row for row in fetch_rows(sorted(wanted))}
    return SessionState(
        surface=surface,
        latest=MappingProxyType(
            {type_: None if seq is None else rows[seq] for type_, seq in body["latest"].items()}
        ),
        inherited_cut=body["inheritedCut"],
        last=rows[next_seq - 1] if next_seq else None,
    )
