"""Hosts the sessions of one store: load, decide, commit, tell; the path of an append is `append_batch`."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from threading import get_ident
from typing import Protocol

from everfold.host.cache import Entry, EntryCache
from everfold.host.forking import Forker, with_free_id
from everfold.host.loading import Loader
from everfold.host.means import system_means
from everfold.session.access import Planner
from everfold.session.composition import Composition
from everfold.session.deciding import AppendEvent, DecisionMeans, checked_event_id
from everfold.session.doors import resume_marker
from everfold.session.errors import (
    ConflictError,
    EventIdReusedError,
    ProjectionChangedError,
    ReentrantAppendError,
    SessionError,
    StoreBusyError,
)
from everfold.session.events import NO_ORIGIN, EventLike, Origin, Recorded, topics_of
from everfold.session.frozen import Json, json_equal
from everfold.session.ids import SessionId, session_id, version_of
from everfold.session.ports import Notification, SessionStore, StreamSummary
from everfold.session.repair import closers
from everfold.session.session import Decision, Session
from everfold.session.session_header import FORMAT_VERSION
from everfold.store.texts import check_several

log = logging.getLogger("everfold.host")

MAX_ATTEMPTS = 50


class Publication(Protocol):
    """May refuse a valid batch before it is stored, by raising `AppendVetoedError` (R143)."""

    def __call__(self, session: Session, events: Sequence[Recorded], /) -> None: ...


class Observer(Protocol):
    """Is told what was stored, in that order; what it raises is logged and changes nothing (R144).

    When several threads append to one session, one of them tells all the batches.
    """

    def __call__(self, session: SessionId, events: Sequence[Recorded], /) -> None: ...


class Sessions:
    """The sessions of one store, for one composition; safe for several threads.

    Args:
        store: where the streams are.
        composition: the event types and projections in force.
        means: clock, ids and the cap of an event's size.
        cached: how many sessions stay folded in memory.
        snapshot_every: a snapshot is stored each time this many events came; 0 for never.
    """

    def __init__(
        self,
        store: SessionStore,
        composition: Composition,
        *,
        means: DecisionMeans | None = None,
        cached: int = 128,
        snapshot_every: int = 1000,
    ) -> None:
        self.store = store
        self.composition = composition
        self.means = system_means() if means is None else means
        self.publications: list[Publication] = []
        self.observers: list[Observer] = []
        self._publishing: set[tuple[int, str]] = set()
        self._loader = Loader(store, composition, self.means, snapshot_every=snapshot_every)
        self._forker = Forker(store, composition, self.means, self._loader)
        self._cache = EntryCache(cached, self._loader)

    # Sessions.

    def create(self, wanted_id: str | None = None, **header: Json) -> Session:
        """Store the header of a new session and return it, empty.

        What is returned is a copy to read and to plan on: what is appended to it is not stored.
        `Sessions.append` stores.

        Args:
            wanted_id: its id; the first free `session-N` if None (R176).
            header: `cwd`, `origin`, `delegationDepth`, `agentPreset` (R151).

        Raises:
            SessionExistsError: the id is taken (R177).
            SessionHeaderError, IdError: header or id are invalid.
        """
        if wanted_id is None:
            return with_free_id(self.store, lambda free: self.create(free, **header))
        fields = {
            "version": FORMAT_VERSION,
            "id": session_id(wanted_id),
            "createdAt": self.means.clock(),
            "isSeeded": False,
        }
        session = Session.create({**header, **fields}, self.composition, self.means)
        self.store.append(session.collect_events())
        self._cache.put(session.id, Entry(session.header, session.state))
        return session

    def load(self, wanted_id: str, *, at: int | None = None) -> Session:
        """Return the session as it is stored now, or as it was after the event `at`.

        Costs the events that came since this host last looked; the first time, those since the
        last snapshot. What is returned is a copy to read and to plan on, the caller's own: it does
        not follow later events, and what is appended to it is not stored. `Sessions.append` stores.

        Raises:
            SessionNotFoundError: there is none.
            BoundaryError: `at` is no seq of it.
            SessionError: the log cannot be folded here; the message names the seq.
        """
        if at is not None:
            return self._loader.load_at(wanted_id, at)
        entry = self._cache.get(wanted_id)
        with entry.lock:
            self._loader.fast_forward(entry)
            return self._loader.view(entry)

    def resume(self, wanted_id: str) -> Session:
        """Take a session over after a crash: close what was left open, mark the end of the seed.

        Calls whose outcome is unknown are answered so, and never repeated (R322 to R332). A session
        that was closed properly only gets its marker.
        """

        def plan(session: Session) -> list[AppendEvent]:
            records = closers(self._since_turn_start(session)) if session.is_turn_open else []
            wishes = [_wish(record) for record in records]
            staged = Session(session.header, self.composition, self.means, state=session.state)
            staged.append_batch(wishes)
            return wishes + [AppendEvent(e.type, e.data) for e in resume_marker(staged)]

        self.append_batch(wanted_id, plan)
        return self.load(wanted_id)

    def fork(
        self, source_id: str, *, boundary: object = None, child_id: str | None = None
    ) -> SessionId:
        """Copy a prefix of a session, in the database, into a new one, and return its id.

        No event passes through this process; the child is folded when it is loaded.

        Args:
            boundary: inclusive seq of the cut; the whole log if None (R165).
            child_id: its id; the first free `session-N` if None.

        Raises:
            SessionExistsError, SessionNotFoundError, BoundaryError, OpenTurnError,
            ProjectionMissingError, UnknownEventError: refused, in this order (R167, R175);
                nothing is left behind.
        """
        if child_id is None:
            return with_free_id(
                self.store, lambda free: self.fork(source_id, boundary=boundary, child_id=free)
            )
        child = session_id(child_id)
        self._forker.fork(source_id, boundary, child)
        return child

    def delete(self, wanted_id: str) -> bool:
        """Remove a session for ever; a later append to its id is refused.

        Returns:
            whether there was one.
        """
        self._cache.forget(wanted_id)
        return self.store.delete_stream(session_id(wanted_id))

    # Appending.

    def append(
        self,
        wanted_id: str,
        type_: str,
        data: Json,
        options: Mapping[str, Json] | None = None,
        *,
        expected_seq: int | None = None,
        event_id: str | None = None,
        origin: Origin = NO_ORIGIN,
    ) -> Recorded:
        """Decide and store one event; see `append_batch`."""
        wish = AppendEvent(type_, data, options, event_id)
        return self.append_batch(wanted_id, (wish,), expected_seq=expected_seq, origin=origin)[0]

    def append_batch(
        self,
        wanted_id: str,
        batch: Sequence[AppendEvent] | Planner,
        *,
        expected_seq: int | None = None,
        origin: Origin = NO_ORIGIN,
    ) -> tuple[Recorded, ...]:
        """Decide events as one batch and store them in one transaction: all or none.

        The path: the cached session; the decision (every check of V1); the publications, which
        may veto; the commit at the expected version; the observers. After a lost race the session
        is brought up to date by the tail alone, and the batch is decided again on the new history.

        Args:
            batch: the events, or a function that plans them and is asked again after a lost race.
            expected_seq: the seq that the first event must get; None for wherever the log is.
            origin: who asks, and in which context.

        Returns:
            the stored events; those of the first time if the first event's own `event_id` was
            stored before with the same content.

        Raises:
            ConflictError: the log is not at `expected_seq`, or other writers kept winning (V5).
            EventIdReusedError: the event id was used before, for other content.
            AppendVetoedError: a publication refused.
            SessionError: an event may not be appended here; nothing changed (R141).
        """
        entry = self._cache.get(wanted_id)
        with entry.lock:
            if (get_ident(), wanted_id) in self._publishing:
                raise ReentrantAppendError(
                    f"session {wanted_id!r} is publishing a batch; append after it"
                )
            events, is_new = self._commit(entry, batch, expected_seq, origin)
            if is_new:
                entry.telling.add(events)
        entry.telling.tell(partial(self._tell, SessionId(wanted_id)))
        return events

    def _commit(
        self,
        entry: Entry,
        batch: Sequence[AppendEvent] | Planner,
        expected_seq: int | None,
        origin: Origin,
    ) -> tuple[tuple[Recorded, ...], bool]:
        """Return the stored events, and whether they were stored now; a lost race is planned again."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            self._expect(entry, expected_seq)
            session = self._loader.view(entry)
            try:
                wishes = batch(session) if callable(batch) else batch
                if not wishes and self._was_behind(entry):
                    continue
                repeated = self._repeated(session, wishes)
                if repeated is not None:
                    return repeated, False
                decision = session.decide(wishes, origin=origin)
            except SessionError as refusal:
                if not self._is_stale(entry, refusal):
                    raise
                continue
            self._publish(session, decision)
            try:
                self.store.append(decision.events, key=wishes[0].event_id)
            except ConflictError as conflict:
                self._loader.catch_up(entry, conflict)
                if expected_seq is not None or attempt == MAX_ATTEMPTS:
                    raise
                continue
            self._loader.accept(entry, decision)
            return decision.events, True
        raise StoreBusyError(f"session {entry.header['id']!r} never stood still to be judged")

    def _is_stale(self, entry: Entry, refusal: SessionError) -> bool:
        """Tell whether a batch was refused on a history that has moved on; the entry follows it."""
        is_lasting = isinstance(refusal, ProjectionChangedError | EventIdReusedError)
        return not is_lasting and self._was_behind(entry)

    def _was_behind(self, entry: Entry) -> bool:
        """Bring the entry up to date; True if others had stored events that it did not know."""
        known = entry.state.next_seq
        self._loader.fast_forward(entry)
        return entry.state.next_seq != known

    def _expect(self, entry: Entry, expected_seq: int | None) -> None:
        if expected_seq is None or entry.state.next_seq == expected_seq:
            return
        self._loader.fast_forward(entry)
        if entry.state.next_seq != expected_seq:
            version = version_of(expected_seq) - 1
            appended = tuple(self.store.read(entry.header["id"], after=max(version, 0)))
            raise ConflictError(entry.header["id"], version, appended)

    def _repeated(
        self, session: Session, wishes: Sequence[AppendEvent]
    ) -> tuple[Recorded, ...] | None:
        """Return what an earlier append with the first wish's own event id stored, if there was one."""
        if not wishes:
            return ()
        find, key = self.store.find_append, wishes[0].event_id
        if key is None or not (stored := tuple(find(session.id, checked_event_id(key)))):
            return None
        if len(stored) != len(wishes) or not all(map(_says, wishes, stored)):
            raise EventIdReusedError(session.id, key)
        return stored

    def _publish(self, session: Session, decision: Decision) -> None:
        if not self.publications:
            return
        # Not beside the session in memory: that may be dropped and loaded again meanwhile.
        publishing = (get_ident(), session.id)
        try:
            self._publishing.add(publishing)
            for publication in tuple(self.publications):
                publication(session, decision.events)
        finally:
            self._publishing.discard(publishing)

    def _tell(self, wanted_id: SessionId, events: Sequence[Recorded]) -> None:
        for observer in tuple(self.observers):
            try:
                observer(wanted_id, events)
            except Exception:  # an observer may raise anything; the append stands (R144)
                log.exception(
                    "an observer failed after events of session %r were stored", wanted_id
                )

    # Reading.

    def log(self, wanted_id: str, *, first: int = 0, last: int | None = None) -> Iterator[Recorded]:
        """Yield the stored events from seq `first` to `last`, read in pages.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        self._loader.header(wanted_id)
        upto = None if last is None else version_of(last)
        yield from self.store.read(wanted_id, after=version_of(max(first, 0)) - 1, upto=upto)

    def header(self, wanted_id: str) -> dict[str, Json]:
        """Return a session's header.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        return self._loader.header(wanted_id)

    def summaries(
        self, *, after: str = "", limit: int | None = None, prefix: str = ""
    ) -> Iterator[StreamSummary]:
        """Yield the sessions in order of id."""
        return self.store.streams(after=after, limit=limit, prefix=prefix)

    def subscribe(
        self, *, after: int = 0, types: Sequence[str] = ()
    ) -> AbstractContextManager[Iterator[Notification]]:
        """Follow what is stored, by any process, from a position of the global order on.

        Args:
            after: the position of the last event that was seen; 0 for the beginning.
            types: the event types to be told of, ignorable or not; all, and headers, if none.

        Raises:
            TypeError: `types` is one text and no list.
        """
        check_several("types", types)
        return self.store.subscribe(after=after, topics=topics_of(*types))

    def snapshot(self, wanted_id: str) -> None:
        """Store a snapshot of a session as it is now."""
        entry = self._cache.get(wanted_id)
        with entry.lock:
            self._loader.fast_forward(entry)
            self._loader.snapshot(entry)

    def _since_turn_start(self, session: Session) -> list[EventLike]:
        start = session.latest("turn/start")
        return list(self.store.read(session.id, after=version_of(start.seq if start else 0) - 1))


def _says(wish: AppendEvent, row: Recorded) -> bool:
    """Tell whether a stored event is what a wish asks for, its place on the surface included."""
    stored = _wish(row.record())
    options = dict(wish.options) if isinstance(wish.options, Mapping) else {}
    return (
        stored.type == wish.type
        and json_equal(stored.data, wish.data)
        and json_equal(stored.options, options)
    )


def _wish(record: Mapping[str, Json]) -> AppendEvent:
    names = ("surfaceOp", "sourceEventSeqs", "ignorable")
    options = {name: record[name] for name in names if name in record}
    return AppendEvent(record["type"], record["data"], options)
