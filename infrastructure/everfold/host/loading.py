"""Brings sessions from the store into memory, and up to date: by snapshot, tail, or whole log."""

import gc
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from everfold.host.cache import Entry
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.errors import (
    ConflictError,
    ProjectionChangedError,
    SessionNotFoundError,
    StoreError,
)
from everfold.session.events import EventLike, Recorded
from everfold.session.fork import check_boundary
from everfold.session.frozen import Json, freeze
from everfold.session.ids import HEADER_VERSION, seq_of, version_of
from everfold.session.ids import session_id as checked_id
from everfold.session.ports import SessionStore
from everfold.session.session import Decision, Session, header_of
from everfold.session.snapshot import state_of, take_snapshot
from everfold.session.state import SessionState, StateFold
from everfold.session.vocabulary import MESSAGE_TYPES

SPARSE = 500
"""Up to this many events are fetched one by one, more by reading the range that they span."""


class Loader:
    """Loads the sessions of one store for one composition."""

    def __init__(
        self,
        store: SessionStore,
        composition: Composition,
        means: DecisionMeans,
        *,
        snapshot_every: int,
    ) -> None:
        self._store = store
        self._composition = composition
        self._means = means
        self._snapshot_every = snapshot_every

    def header(self, session_id: str) -> dict[str, Json]:
        """Return a stored header.

        Raises:
            IdError: no session can have this id.
            SessionNotFoundError: there is no such session.
        """
        rows = self._store.read_versions(checked_id(session_id), (HEADER_VERSION,))
        if not rows:
            raise SessionNotFoundError(session_id)
        return header_of(rows[0])

    def load(self, session_id: str) -> Entry:
        """Return a session that is not in memory, from its last snapshot or its whole log."""
        header = self.header(session_id)
        state = self._from_snapshot(session_id, None)
        reached = state.next_seq
        state = self._folded(session_id, state, None)
        first_live = state.inherited_count if header["isSeeded"] else state.next_seq
        entry = Entry(freeze(header), state, first_live, snapshot_seq=reached)
        self._maybe_snapshot(entry)
        return entry

    def load_at(self, session_id: str, at: int) -> Session:
        """Return a session as it was after the event `at`."""
        header = self.header(session_id)
        cut = check_boundary(at, seq_of(self._store.version(session_id)))
        state = self._from_snapshot(session_id, version_of(cut))
        state = self._folded(session_id, state, version_of(cut))
        return Session(header, self._composition, self._means, state=state)

    def view(self, entry: Entry) -> Session:
        """Return a session over an entry's state, for one caller."""
        session = Session(
            entry.header,
            self._composition,
            self._means,
            state=entry.state,
            cache=entry.conversations,
        )
        session.first_live_seq = entry.first_live_seq
        return session

    def fast_forward(self, entry: Entry) -> None:
        """Fold what was stored since the entry's state; a changed composition folds all anew (R117)."""
        try:
            entry.state.check_projections(self._composition)
        except ProjectionChangedError:
            self._reload(entry)
            return
        if not self._follow(entry):
            self._reload(entry)
        self._maybe_snapshot(entry)

    def _follow(self, entry: Entry) -> bool:
        """Fold the tail; False if the stored log is not a continuation of what is in memory."""
        start = entry.state
        known = version_of(start.next_seq) - 1
        rows = iter(self._store.read(entry.header["id"], after=known - 1))
        first = next(rows, None)
        last = start.last
        if first is None or (isinstance(last, Recorded) and first.state != last.state):
            return False
        fold = StateFold(start, self._composition)
        with collector_paused():
            fold.run(rows)
        _advance(entry, fold.state())
        return True

    def _reload(self, entry: Entry) -> None:
        fresh = self.load(entry.header["id"])
        entry.state, entry.snapshot_seq = fresh.state, fresh.snapshot_seq
        entry.conversations = fresh.conversations

    def catch_up(self, entry: Entry, conflict: ConflictError) -> None:
        """Fold what a conflict says the others stored."""
        start = entry.state
        known = version_of(start.next_seq) - 1
        fold = StateFold(start, self._composition)
        fold.run([event for event in conflict.appended if event.originator_version > known])
        _advance(entry, fold.state())

    def accept(self, entry: Entry, decision: Decision) -> None:
        """Make a stored decision the entry's state."""
        _advance(entry, decision.state)
        self._maybe_snapshot(entry)

    def snapshot(self, entry: Entry) -> None:
        """Store a snapshot of an entry's state."""
        self._store.save_snapshot(take_snapshot(entry.header["id"], entry.state, self._composition))
        entry.snapshot_seq = entry.state.next_seq

    def _maybe_snapshot(self, entry: Entry) -> None:
        every = self._snapshot_every
        if every and entry.state.next_seq - entry.snapshot_seq >= every:
            try:
                self.snapshot(entry)
            except StoreError:
                # The events are stored; a snapshot only saves time. Try again after as many more.
                entry.snapshot_seq = entry.state.next_seq

    def _folded(self, session_id: str, start: SessionState, upto: int | None) -> SessionState:
        fold = StateFold(start, self._composition)
        with collector_paused():
            fold.run(self._store.read(session_id, after=version_of(start.next_seq) - 1, upto=upto))
        return fold.state()

    def _from_snapshot(self, session_id: str, upto: int | None) -> SessionState:
        snapshot = self._store.load_snapshot(session_id, upto=upto)
        if snapshot is None:
            return SessionState.empty()

        def rows(seqs: Sequence[int]) -> Sequence[Recorded]:
            return self._store.read_versions(session_id, [version_of(seq) for seq in seqs])

        def messages(seqs: Sequence[int]) -> Iterable[EventLike]:
            if len(seqs) <= SPARSE:
                found: Iterable[Recorded] = rows(seqs)
            else:
                wanted = frozenset(seqs)
                after, upto = version_of(min(seqs)) - 1, version_of(max(seqs))
                span = self._store.read(session_id, after=after, upto=upto)
                found = (row for row in span if row.seq in wanted)
            return [row for row in found if row.type in MESSAGE_TYPES]

        state = state_of(snapshot, self._composition, messages, rows)
        return SessionState.empty() if state is None else state


def _advance(entry: Entry, state: SessionState) -> None:
    """Make a state the entry's, unless an append by a signal handler has gone further meanwhile."""
    if entry.state.next_seq < state.next_seq:
        entry.state = state


class _Collector:
    """Counts who wants the garbage collector to wait; it is the process's, so there is one."""

    def __init__(self) -> None:
        # Signal handlers may load, also amid a load: the order below is right wherever one comes.
        self._lock = threading.RLock()
        self._waits = 0
        self._was_enabled = False

    def pause(self) -> None:
        with self._lock:
            self._waits += 1
            if self._waits == 1:
                self._was_enabled = gc.isenabled()
                gc.disable()

    def go_on(self) -> None:
        with self._lock:
            if self._waits == 1 and self._was_enabled:
                gc.enable()
            self._waits -= 1


_COLLECTOR = _Collector()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from scanning a big fold again and again; nests, across threads."""
    _COLLECTOR.pause()
    try:
        yield
    finally:
        _COLLECTOR.go_on()
