"""Deciding what became of an append that the database refused, or whose reply was lost.

The same refusal comes from a lost race and from a repetition of our own commit (docs/decisions/0011):
only the event ids in the stored rows tell the two apart.
"""

from collections.abc import Sequence

from everfold.session.errors import (
    ConflictError,
    CorruptStreamError,
    SessionError,
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
)
from everfold.session.events import Recorded
from everfold.session.ids import HEADER_VERSION
from everfold.store.backend import (
    AppendRefusedError,
    Backend,
    KeyTakenError,
    Run,
    StreamDeletedError,
    VersionTakenError,
)
from everfold.store.mapper import SessionMapper


def stored_positions(
    backend: Backend, mapper: SessionMapper, runs: Sequence[Run]
) -> Sequence[int] | None:
    """Return the positions of the runs if every event of them is stored, else None."""
    positions: list[int] = []
    for run in runs:
        rows = backend.select(run.stream_id, run.first - 1, run.last, None, False)
        if len(rows) != len(run.topics):
            return None
        for (_, topic, stored), ours_topic, ours in zip(rows, run.topics, run.states, strict=True):
            if topic != ours_topic or not _is_same(mapper, stored, ours):
                return None
        positions += backend.select_positions(run.stream_id, run.first, run.last)
    return positions


def _is_same(mapper: SessionMapper, stored: bytes, ours: bytes) -> bool:
    if stored == ours:
        return True
    try:
        return _event_id(mapper, stored) == _event_id(mapper, ours)
    except (CorruptStreamError, KeyError):
        return False


def _event_id(mapper: SessionMapper, state: bytes) -> str:
    return Recorded("", HEADER_VERSION, "", mapper.decode_state(state)).event_id


def refused(
    refusal: AppendRefusedError, runs: Sequence[Run], newer: Sequence[Recorded], stored_version: int
) -> SessionError:
    """Return the error that tells the caller why nothing was stored.

    Args:
        newer: what the refused stream holds from the refused version on.
        stored_version: the refused stream's last version.
    """
    stream_id = refusal.stream_id
    first = next(run.first for run in runs if run.stream_id == stream_id)
    if isinstance(refusal, StreamDeletedError):
        return SessionExistsError(stream_id, deleted=True)
    if isinstance(refusal, VersionTakenError) and first == HEADER_VERSION:
        return SessionExistsError(stream_id)
    if isinstance(refusal, (VersionTakenError, KeyTakenError)):
        return ConflictError(stream_id, first - 1, newer)
    if not stored_version:
        return SessionNotFoundError(stream_id)
    return StoreError(
        f"session {stream_id!r} ends at version {stored_version}; "
        f"events from version {first} on would leave a gap"
    )
