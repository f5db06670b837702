"""What the session store needs of a database: rows in and rows out, in the driver's own errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from everfold.session.errors import StoreError

Row = tuple[int, str, bytes]
"""Stream version, topic, stored state."""

GlobalRow = tuple[int, str, int, str, bytes]
"""Position, stream id, stream version, topic, stored state."""


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of one stream with consecutive versions."""

    stream_id: str
    first: int
    topics: Sequence[str]
    states: Sequence[bytes]

    @property
    def last(self) -> int:
        """Version of the last row."""
        return self.first + len(self.topics) - 1


class Storable(Protocol):
    """The fields that a `Recorded` and the library's `StoredEvent` share."""

    @property
    def originator_id(self) -> str: ...
    @property
    def originator_version(self) -> int: ...
    @property
    def topic(self) -> str: ...
    @property
    def state(self) -> bytes: ...


def runs_of(events: Sequence[Storable]) -> list[Run]:
    """Return the events cut where stream or version does not go on, in the given order."""
    runs: list[Run] = []
    stream_id, due = "", -1
    topics: list[str] = []
    states: list[bytes] = []
    for event in events:
        if event.originator_version != due or event.originator_id != stream_id:
            stream_id, due = event.originator_id, event.originator_version
            topics, states = [], []
            runs.append(Run(stream_id, due, topics, states))
        topics.append(event.topic)
        states.append(event.state)
        due += 1
    return runs


class AppendRefusedError(Exception):
    """The database took nothing of an append, for a reason that is not a failure.

    Attributes:
        stream_id: the stream whose rows were refused.
    """

    def __init__(self, stream_id: str, reason: str) -> None:
        super().__init__(f"stream {stream_id!r}: {reason}")
        self.stream_id = stream_id


class VersionTakenError(AppendRefusedError):
    """A row is stored at one of the versions already."""


class VersionGapError(AppendRefusedError):
    """The rows would not follow the last stored one."""


class KeyTakenError(AppendRefusedError):
    """The append's key was used before in this stream."""


class StreamDeletedError(AppendRefusedError):
    """The stream was deleted."""


class SourceShortError(AppendRefusedError):
    """The stream to be copied is not there, or has fewer rows, or a gap."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A stream to be made of a header, rows 2..`upto` of another one, and a tail."""

    source_id: str
    upto: int
    target_id: str
    header: tuple[str, bytes]
    tail_topics: Sequence[str]
    tail_states: Sequence[bytes]


class Follower(Protocol):
    """A connection of its own that waits for new rows and reads them; one thread uses it."""

    def read(self, after: int, limit: int, topics: Sequence[str]) -> tuple[int, list[GlobalRow]]:
        """Return how far was looked, and the rows that were found on the way."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when something may have been stored, `wake` was called, or the time is over."""
        ...

    def wake(self) -> None:
        """End a wait; called from any thread."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Backend(Protocol):
    """One database. Safe for many threads; every method is one transaction."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The driver's own errors, as they come out of every method."""
        ...

    def insert(self, runs: Sequence[Run], key: bytes | None) -> Sequence[int]:
        """Store the runs; return their positions.

        Raises:
            AppendRefusedError: nothing was stored.
        """
        ...

    def select(
        self, stream_id: str, after: int, upto: int | None, limit: int | None, descending: bool
    ) -> list[Row]:
        """Return rows of a stream in order of version."""
        ...

    def select_versions(self, stream_id: str, versions: Sequence[int]) -> list[Row]:
        """Return the rows at these versions in order of version."""
        ...

    def select_positions(self, stream_id: str, first: int, last: int) -> list[int]:
        """Return the positions of the rows from version `first` to `last`."""
        ...

    def select_last(self, stream_id: str, topics: Sequence[str], upto: int | None) -> Row | None:
        """Return the newest row with one of the topics."""
        ...

    def select_topics(self, stream_id: str, upto: int | None) -> list[str]:
        """Return the distinct topics of the rows up to a version."""
        ...

    def select_key(self, stream_id: str, key: bytes) -> list[Row]:
        """Return the rows that were stored under this key."""
        ...

    def last_version(self, stream_id: str) -> int:
        """Return the last version, 0 if there is no such stream."""
        ...

    def copy(self, copy: Copy) -> int:
        """Make a stream of another one; return its last version."""
        ...

    def select_streams(self, after: str, prefix: str, limit: int) -> list[tuple[str, Row, Row]]:
        """Return ids greater than `after`, not less than `prefix`, with first and last row."""
        ...

    def delete(self, stream_id: str) -> bool:
        """Remove a stream for ever; return whether there was one."""
        ...

    def put_snapshot(self, stream_id: str, row: Row) -> None:
        """Store a snapshot; the newest two of a stream are kept."""
        ...

    def select_snapshot(self, stream_id: str, upto: int | None) -> Row | None:
        """Return the newest snapshot at or below a version."""
        ...

    def select_log(
        self, after: int, upto: int, limit: int, topics: Sequence[str]
    ) -> list[GlobalRow]:
        """Return rows of the global order with `after` < position <= `upto`.

        Args:
            upto: at most what `last_position` gave.
        """
        ...

    def last_position(self) -> int:
        """Return the last position that no later commit can precede, 0 if nothing is stored."""
        ...

    def follower(self) -> Follower:
        """Open a connection that follows the global order."""
        ...

    def translate(self, error: Exception) -> StoreError:
        """Return what one of `errors` means to callers."""
        ...

    def is_lost_connection(self, error: Exception) -> bool:
        """Return whether the error leaves open if the statement was carried out."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
