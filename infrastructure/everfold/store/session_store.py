"""The session store: one set of rules over either database."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import ParamSpec, Self, TypeVar
from weakref import WeakSet

from everfold.session.errors import (
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
    StoreUnavailableError,
)
from everfold.session.events import CREATED_TOPIC, Recorded
from everfold.session.ids import HEADER_VERSION
from everfold.session.ports import Notification, StoredSnapshot, StreamSummary
from everfold.store.backend import (
    AppendRefusedError,
    Backend,
    Copy,
    GlobalRow,
    Row,
    Run,
    SourceShortError,
    StreamDeletedError,
    runs_of,
)
from everfold.store.mapper import SessionMapper
from everfold.store.rows import ascending, checked, descending_pages, unchecked
from everfold.store.settling import refused, stored_positions
from everfold.store.subscription import LogFollowing, NotificationStream
from everfold.store.texts import check_several, check_texts

_STREAM_PAGE = 200
_LOG_PAGE = 5000
_SETTLING_PAUSES_S = (0.0, 0.02, 0.1, 0.3, 1.0, 2.0, 3.0, 4.0)

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseSessionStore:
    """A `SessionStore` on a database.

    Args:
        backend: the database.
        mapper: compresses and encrypts states, if it is configured to.
        name: what to call the store; holds no password.
    """

    def __init__(self, backend: Backend, mapper: SessionMapper, name: str) -> None:
        self.backend = backend
        self.mapper = mapper
        self.name = name
        self._followings: WeakSet[LogFollowing] = WeakSet()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; subscriptions end."""
        for following in list(self._followings):
            following.stop()
        self.backend.close()

    def append(self, events: Sequence[Recorded], *, key: str | None = None) -> Sequence[int]:
        """Store events in one transaction; see `SessionStore.append`."""
        runs = self._runs(events)
        if not runs:
            return ()
        stored_key = None if key is None else _key(key)
        if stored_key is not None and len(runs) > 1:
            raise ValueError("an append under a key is of one stream")
        return self.append_runs(runs, stored_key)

    def append_runs(self, runs: list[Run], stored_key: bytes | None = None) -> Sequence[int]:
        """Store rows whose states are encoded already; otherwise as `append`."""
        for run in runs:
            check_texts(run.stream_id, *set(run.topics))
        return self._commit(
            lambda: self.backend.insert(runs, stored_key),
            lambda refusal: self._settle(refusal, runs),
            lambda: stored_positions(self.backend, self.mapper, runs),
        )

    def _runs(self, events: Sequence[Recorded]) -> list[Run]:
        runs = runs_of(events)
        if self.mapper.is_plain:
            return runs
        encode = self.mapper.encode_state
        return [
            Run(run.stream_id, run.first, run.topics, [encode(state) for state in run.states])
            for run in runs
        ]

    def _commit(
        self,
        attempt: Callable[[], T],
        settle: Callable[[AppendRefusedError], T],
        look: Callable[[], T | None],
    ) -> T:
        """Commit something that knows its own repetition, and find out what became of it.

        When a connection is lost, nobody knows if the server carried out what it was sent. Sending
        it again is safe: of two commits of the same rows one is refused, and `settle` finds by the
        event ids that it was ours. Any other failure may have come after the commit, as followers were
        woken: `look` finds what is stored then.
        """
        lost: Exception | None = None
        for pause_s in _SETTLING_PAUSES_S:
            if lost is not None:
                time.sleep(pause_s)
            try:
                return attempt()
            except AppendRefusedError as refusal:
                return self._call(settle, refusal)
            except StoreError:
                if lost is None:
                    raise
            except self.backend.errors as error:
                if lost is None and not self.backend.is_lost_connection(error):
                    return self._outcome(look, error)
                lost = error
        raise StoreUnavailableError(
            f"{self.name}: the connection was lost during a commit and could not be had again, so "
            "it is not known whether the events were stored; append them again, with the same "
            "event ids, to find out"
        ) from lost

    def _outcome(self, look: Callable[[], T | None], error: Exception) -> T:
        failure = self.backend.translate(error)
        try:
            found = look()
        except self.backend.errors:
            raise failure from error
        if found is None:
            raise failure from error
        return found

    def _settle(self, refusal: AppendRefusedError, runs: list[Run]) -> Sequence[int]:
        positions = stored_positions(self.backend, self.mapper, runs)
        if positions is not None:
            return positions
        stream_id = refusal.stream_id
        first = next(run.first for run in runs if run.stream_id == stream_id)
        # Whoever finds an id taken wants none of that session's events, which may not even be readable.
        newer = [] if first == HEADER_VERSION else list(self.read(stream_id, after=first - 1))
        raise refused(refusal, runs, newer, self.backend.last_version(stream_id)) from refusal

    def find_append(self, stream_id: str, key: str) -> Sequence[Recorded]:
        """Return the events that were appended under this key, none if there was no such append."""
        check_texts(stream_id)
        rows = self._call(self.backend.select_key, stream_id, _key(key))
        return checked(self.mapper, stream_id, rows)

    def read(
        self,
        stream_id: str,
        *,
        after: int = 0,
        upto: int | None = None,
        limit: int | None = None,
        descending: bool = False,
    ) -> Iterable[Recorded]:
        """Yield the stream's rows page by page; see `SessionStore.read`.

        Raises:
            CorruptStreamError: a row is missing or unreadable; all rows before it were yielded.
        """
        check_texts(stream_id)

        def fetch(low: int, high: int | None, count: int) -> list[Row]:
            return self._call(self.backend.select, stream_id, low, high, count, descending)

        read = descending_pages if descending else ascending
        for page in read(self.mapper, stream_id, fetch, after, upto, limit):
            yield from page

    def read_versions(self, stream_id: str, versions: Sequence[int]) -> Sequence[Recorded]:
        """Return the rows at exactly these versions, in version order."""
        check_texts(stream_id)
        if not versions:
            return ()
        rows = self._call(self.backend.select_versions, stream_id, versions)
        return checked(self.mapper, stream_id, rows)

    def last_of(
        self, stream_id: str, topics: Sequence[str], *, upto: int | None = None
    ) -> Recorded | None:
        """Return the newest row with one of these topics, up to a version."""
        check_several("topics", topics)
        check_texts(stream_id, *topics)
        row = None
        rest = [topic for topic in topics if topic != CREATED_TOPIC]
        if rest:
            row = self._call(self.backend.select_last, stream_id, rest, upto)
        if row is None and len(rest) < len(topics) and (upto is None or upto >= HEADER_VERSION):
            # The header can only be the first row; nothing has to be looked through for it.
            return next(iter(self.read_versions(stream_id, [HEADER_VERSION])), None)
        return None if row is None else checked(self.mapper, stream_id, [row])[0]

    def topics(self, stream_id: str, *, upto: int | None = None) -> frozenset[str]:
        """Return the distinct topics of a stream's rows up to a version."""
        check_texts(stream_id)
        return frozenset(self._call(self.backend.select_topics, stream_id, upto))

    def version(self, stream_id: str) -> int:
        """Return the stream's last version; 0 if there is no such stream."""
        check_texts(stream_id)
        return self._call(self.backend.last_version, stream_id)

    def copy_stream(
        self, source_id: str, upto: int, header: Recorded, tail: Sequence[Recorded]
    ) -> int:
        """Make a stream of another one, inside the database; see `SessionStore.copy_stream`."""
        check_texts(source_id, header.originator_id, *(event.topic for event in (header, *tail)))
        encode = self.mapper.encode_state
        copy = Copy(
            source_id,
            upto,
            header.originator_id,
            (header.topic, encode(header.state)),
            [event.topic for event in tail],
            [encode(event.state) for event in tail],
        )
        return self._commit(
            lambda: self.backend.copy(copy),
            lambda refusal: self._settle_copy(refusal, copy),
            lambda: self._copied(copy),
        )

    def _settle_copy(self, refusal: AppendRefusedError, copy: Copy) -> int:
        if isinstance(refusal, StreamDeletedError):
            raise SessionExistsError(copy.target_id, deleted=True) from refusal
        if isinstance(refusal, SourceShortError):
            if not self.backend.last_version(copy.source_id):
                raise SessionNotFoundError(copy.source_id) from refusal
            raise StoreError(f"session {copy.source_id!r} has not {refusal}") from refusal
        version = self._copied(copy)
        if version is None:
            raise SessionExistsError(copy.target_id) from refusal
        return version

    def _copied(self, copy: Copy) -> int | None:
        header = Run(copy.target_id, HEADER_VERSION, [copy.header[0]], [copy.header[1]])
        is_ours = stored_positions(self.backend, self.mapper, [header]) is not None
        return copy.upto + len(copy.tail_topics) if is_ours else None

    def streams(
        self, *, after: str = "", limit: int | None = None, prefix: str = ""
    ) -> Iterator[StreamSummary]:
        """Yield the streams in order of id; see `SessionStore.streams`."""
        check_texts(after, prefix)
        while limit is None or limit > 0:
            size = _STREAM_PAGE if limit is None else min(limit, _STREAM_PAGE)
            found = self._call(self.backend.select_streams, after, prefix, size)
            for stream_id, head, tail in found:
                if not stream_id.startswith(prefix):
                    return
                yield self._summary(stream_id, head, tail)
            if len(found) < size:
                return
            after = found[-1][0]
            limit = None if limit is None else limit - size

    def _summary(self, stream_id: str, head: Row, tail: Row) -> StreamSummary:
        created, last = (unchecked(self.mapper, stream_id, row) for row in (head, tail))
        return StreamSummary(stream_id, tail[0], created, last)

    def delete_stream(self, stream_id: str) -> bool:
        """Remove a stream, its snapshots and keys for ever; see `SessionStore.delete_stream`."""
        check_texts(stream_id)
        return self._call(self.backend.delete, stream_id)

    def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Store a snapshot; the newest two of each stream are kept."""
        check_texts(snapshot.stream_id, snapshot.topic)
        state = self.mapper.encode_state(snapshot.state)
        row = (snapshot.version, snapshot.topic, state)
        self._call(self.backend.put_snapshot, snapshot.stream_id, row)

    def load_snapshot(self, stream_id: str, *, upto: int | None = None) -> StoredSnapshot | None:
        """Return the newest snapshot at or below a version."""
        check_texts(stream_id)
        row = self._call(self.backend.select_snapshot, stream_id, upto)
        if row is None:
            return None
        version, topic, state = row
        return StoredSnapshot(stream_id, version, topic, self.mapper.decode_state(state))

    def subscribe(self, *, after: int = 0, topics: Sequence[str] = ()) -> NotificationStream:
        """Follow the global order; see `SessionStore.subscribe`."""
        return NotificationStream(self.follow(after, topics), self._notification)

    def follow(self, after: int, topics: Sequence[str]) -> LogFollowing:
        """Follow the rows of the global order; it ends when the store is closed."""
        check_several("topics", topics)
        check_texts(*topics)
        following = LogFollowing(self.backend, after, topics)
        self._followings.add(following)
        return following

    def read_all(
        self, *, after: int = 0, limit: int | None = None, topics: Sequence[str] = ()
    ) -> Sequence[Notification]:
        """Return what is stored after a position of the global order, without waiting."""
        check_several("topics", topics)
        check_texts(*topics)
        end = self._call(self.backend.last_position)
        found: list[Notification] = []
        while after < end and (limit is None or len(found) < limit):
            size = _LOG_PAGE if limit is None else min(_LOG_PAGE, limit - len(found))
            rows = self._call(self.backend.select_log, after, end, size, topics)
            found += map(self._notification, rows)
            if len(rows) < size:
                break
            after = rows[-1][0]
        return found

    def _notification(self, row: GlobalRow) -> Notification:
        position, stream_id, version, topic, state = row
        return Notification(position, unchecked(self.mapper, stream_id, (version, topic, state)))

    def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the database; its driver's errors become the store's."""
        try:
            return function(*args, **kwargs)
        except self.backend.errors as error:
            raise self.backend.translate(error) from error


def _key(key: str) -> bytes:
    # As bytes: PostgreSQL keeps no NUL in text, and a caller may use any text as a key.
    return key.encode("utf-8", "surrogatepass")
