"""The library's recorder interface over a session store, for both databases."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from eventsourcing.persistence import (
    ApplicationRecorder,
    DatabaseError,
    IntegrityError,
    Notification,
    NotSupportedError,
    OperationalError,
    PersistenceError,
    StoredEvent,
    Subscription,
)

from everfold.session.errors import (
    ConflictError,
    SessionError,
    SessionExistsError,
    SessionNotFoundError,
    StoreBusyError,
    StoreTextError,
    StoreUnavailableError,
)
from everfold.session.events import Recorded
from everfold.store.backend import Backend, GlobalRow, runs_of
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.texts import check_several, check_texts

T = TypeVar("T")


class StoreRecorder(ApplicationRecorder):
    """Replaces what the library's recorders do by what the store does.

    Against the hazards of docs/decisions/0011: no decorator that repeats a failed call
    ten times and so turns a time limit into ten of them; a commit whose reply was lost is
    recognised; no pipeline; no row is a dictionary or a UUID; a position is never passed over.
    """

    store: DatabaseSessionStore

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: object
    ) -> Sequence[int] | None:
        """Store the events in one transaction; return their positions.

        Raises:
            IntegrityError: a version is taken, or would leave a gap, or the stream was deleted.
            OperationalError: the database was busy, or is not there.
        """
        del kwargs
        rows = [
            Recorded(str(each.originator_id), each.originator_version, each.topic, each.state)
            for each in stored_events
        ]
        if not rows:
            return []
        try:
            return self.store.append_runs(runs_of(rows))
        except SessionError as error:
            raise _library_error(error) from error

    def select_events(
        self,
        originator_id: object,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return rows of a stream in order of version."""
        stream_id = str(originator_id)
        rows = self._ask(
            lambda backend: backend.select(stream_id, gt or 0, lte, limit, desc), stream_id
        )
        return [StoredEvent(stream_id, version, topic, state) for version, topic, state in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return rows of the global order; none that a later commit could still precede."""
        check_several("topics", topics)
        after = (start or 0) - (1 if inclusive_of_start and start is not None else 0)
        settled = self.last_position()
        upto = settled if stop is None else min(stop, settled)
        rows = self._ask(lambda backend: backend.select_log(after, upto, limit, topics), *topics)
        return list(map(notification_of, rows))

    def last_position(self) -> int:
        """Return the last position that no later commit can precede, 0 if nothing is stored."""
        return self._ask(lambda backend: backend.last_position())

    def _ask(self, question: Callable[[Backend], T], *texts: str) -> T:
        """Ask the database; what goes wrong comes out as the library's errors."""
        backend = self.store.backend
        try:
            check_texts(*texts)
            return question(backend)
        except StoreTextError as error:
            raise _library_error(error) from error
        except backend.errors as error:
            raise _library_error(backend.translate(error)) from error

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Follow the global order; unlike the library's own, on SQLite too."""
        return RecorderSubscription(self, gt, topics)


class RecorderSubscription(Subscription[ApplicationRecorder]):
    """The library's subscription, without threads of its own; it outlives a lost connection."""

    def __init__(self, recorder: StoreRecorder, gt: int | None, topics: Sequence[str]) -> None:
        super().__init__(recorder, gt, topics)
        try:
            self._following = recorder.store.follow(gt or 0, topics)
        except StoreTextError as error:
            raise _library_error(error) from error

    def stop(self) -> None:
        """End the iteration, from any thread."""
        super().stop()
        self._following.stop()

    def __next__(self) -> Notification:
        row = self._following.next_row()
        if row is None:
            raise StopIteration
        return notification_of(row)


def no_recorder_of(purpose: str) -> NotSupportedError:
    """Return the refusal to make another recorder than that of the store's events."""
    return NotSupportedError(
        f"a session store has no recorder of {purpose}; save snapshots with store.save_snapshot(), "
        "keep the tracking records of projections in a database of their own"
    )


def notification_of(row: GlobalRow) -> Notification:
    """Return the library's notification of a row of the global order."""
    position, stream_id, version, topic, state = row
    return Notification(stream_id, version, topic, state, position)


def _library_error(error: SessionError) -> PersistenceError:
    if isinstance(error, (ConflictError, SessionExistsError, SessionNotFoundError)):
        return IntegrityError(str(error))
    if isinstance(error, (StoreBusyError, StoreUnavailableError)):
        return OperationalError(str(error))
    return DatabaseError(str(error))
