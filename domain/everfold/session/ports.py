"""What sessions need from the world: a store of streams, a clock and fresh ids."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from everfold.session.events import Recorded

Clock = Callable[[], int]
"""Gives the time in milliseconds since 1970 UTC."""

NewId = Callable[[], str]
"""Gives text that was never given before."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A stored event with its place in the store's global order.

    Attributes:
        position: strictly increasing along each stream and for each reader, not gapless; a follower
            resumes after it and misses nothing, for rows come when no later commit can precede them.
    """

    position: int
    event: Recorded


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A folded state as of a stream version; `topic` names what made it."""

    stream_id: str
    version: int
    topic: str
    state: bytes


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """One line of a list of streams.

    Attributes:
        version: the last stored version; the number of events is one less.
        created: the header row.
        last: the newest row.
    """

    stream_id: str
    version: int
    created: Recorded
    last: Recorded


class SessionStore(Protocol):
    """Streams of recorded events in one database; safe for many threads and processes.

    Every method may raise a `StoreError`. A store is a context manager; leaving it closes it.
    """

    def append(self, events: Sequence[Recorded], *, key: str | None = None) -> Sequence[int]:
        """Store events of one or several streams in one transaction; all or none.

        A commit whose reply was lost is recognised by the events' ids and counts as done.

        Args:
            events: contiguous versions per stream, each following the stored ones.
            key: the caller's id for this append of one stream; remembered with its versions.

        Returns:
            the events' positions in the global order.

        Raises:
            ConflictError: another writer stored something at one of these versions (or this key).
            SessionExistsError: version 1 is taken, or the stream was deleted.
        """
        ...

    def find_append(self, stream_id: str, key: str) -> Sequence[Recorded]:
        """Return the events that were appended under this key, none if there was no such append."""
        ...

    def read(
        self,
        stream_id: str,
        *,
        after: int = 0,
        upto: int | None = None,
        limit: int | None = None,
        descending: bool = False,
    ) -> Iterable[Recorded]:
        """Return the stream's rows with `after` < version <= `upto`, in version order."""
        ...

    def read_versions(self, stream_id: str, versions: Sequence[int]) -> Sequence[Recorded]:
        """Return the rows at exactly these versions, in version order."""
        ...

    def last_of(
        self, stream_id: str, topics: Sequence[str], *, upto: int | None = None
    ) -> Recorded | None:
        """Return the newest row with one of these topics, up to a version.

        It looks backwards from there: at once for a topic that is near the end, through the whole
        stream (a tenth of the time of reading it) for one that is not in it.
        """
        ...

    def topics(self, stream_id: str, *, upto: int | None = None) -> frozenset[str]:
        """Return the distinct topics of a stream's rows up to a version, the header's included."""
        ...

    def version(self, stream_id: str) -> int:
        """Return the stream's last version; 0 if there is no such stream."""
        ...

    def copy_stream(
        self, source_id: str, upto: int, header: Recorded, tail: Sequence[Recorded]
    ) -> int:
        """Make a stream of `header`, the source's rows 2..`upto` byte for byte, and `tail`.

        One transaction, inside the database; no copied row passes through Python.

        Returns:
            the new stream's last version.

        Raises:
            SessionExistsError: the new id is taken.
            SessionNotFoundError: no such source.
        """
        ...

    def streams(
        self, *, after: str = "", limit: int | None = None, prefix: str = ""
    ) -> Iterator[StreamSummary]:
        """Yield the streams in order of id (by code point), from the first one after `after`."""
        ...

    def delete_stream(self, stream_id: str) -> bool:
        """Remove a stream, its snapshots and keys for ever; a later append to it is refused.

        Returns:
            whether there was one.
        """
        ...

    def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Store a snapshot; one that is there already for that version is replaced."""
        ...

    def load_snapshot(self, stream_id: str, *, upto: int | None = None) -> StoredSnapshot | None:
        """Return the newest snapshot at or below a version."""
        ...

    def subscribe(
        self, *, after: int = 0, topics: Sequence[str] = ()
    ) -> AbstractContextManager[Iterator[Notification]]:
        """Follow the global order from a position, for ever, across processes.

        Nothing that commits late is missed. A lost connection is opened again, with growing
        pauses. Leaving the context, from any thread, ends the iteration.
        """
        ...

    def read_all(
        self, *, after: int = 0, limit: int | None = None, topics: Sequence[str] = ()
    ) -> Sequence[Notification]:
        """Return what is stored after a position of the global order, without waiting."""
        ...
