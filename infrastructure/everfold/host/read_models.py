"""Keeps read models up to date: in process after commits, and from the global order for other processes."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from everfold.host.checkpoints import Checkpoints, MemoryCheckpoints
from everfold.host.session_readings import SessionReadings
from everfold.host.sessions import Sessions
from everfold.plugins.read_models import ReadModels, ReadModelStuckError
from everfold.session.composition import Disposer
from everfold.session.errors import SessionNotFoundError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.ids import SessionId
from everfold.session.ports import Notification

log = logging.getLogger("everfold.host")

CHECKPOINT_EVERY = 500
LIVE = 128


class ReadModelRunner:
    """Runs the read models of one host's sessions; safe for several threads.

    A read model cannot refuse an event: it sees what is stored. One that cannot go on is named in
    the program's own log, and stands still; all others and the session go on.

    Args:
        models: the registered read models; those that come later are read from the log.
        checkpoints: where their states are kept between runs.
        checkpoint_every: a checkpoint is kept each time so many events came.
        live: how many sessions' readings stay in memory.
    """

    def __init__(
        self,
        sessions: Sessions,
        models: ReadModels,
        checkpoints: Checkpoints | None = None,
        *,
        checkpoint_every: int = CHECKPOINT_EVERY,
        live: int = LIVE,
    ) -> None:
        self._sessions = sessions
        self._models = models
        self._checkpoints = MemoryCheckpoints() if checkpoints is None else checkpoints
        self._every = checkpoint_every
        self._most_live = live
        self._live: OrderedDict[str, SessionReadings] = OrderedDict()
        # Signal handlers may append, and observers are told then.
        self._lock = threading.RLock()
        self._position = self._checkpoints.load_position()

    def read(self, session_id: str, name: str) -> Json:
        """Return what a read model says of a session, up to date with the store.

        Raises:
            ReadModelError: there is no such read model, or it cannot fold an event of this log.
            SessionNotFoundError: there is no such session.
        """
        return self._readings(session_id).view(self._models.find(name))

    def rebuild(self, session_id: str, name: str) -> Json:
        """Return what a read model says, folded from the first event on; the old state is dropped.

        Raises:
            ReadModelError: there is no such read model, or it cannot fold an event of this log.
            SessionNotFoundError: there is no such session.
        """
        self._readings(session_id).start_anew(self._models.find(name))
        return self.read(session_id, name)

    # Following.

    def attach(self) -> Disposer:
        """Follow what this host stores, after each commit; return what ends it."""
        self._sessions.observers.append(self._observe)

        def dispose() -> None:
            if self._observe in self._sessions.observers:
                self._sessions.observers.remove(self._observe)

        return dispose

    @property
    def position(self) -> int:
        """The position of the global order that was followed so far; `follow` goes on after it."""
        return self._position

    def follow(self, notifications: Iterable[Notification]) -> None:
        """Follow what any process stores, until the notifications end.

            with sessions.subscribe(after=runner.position) as notifications:
                runner.follow(notifications)

        An event that comes twice is folded once; one that was missed is read from the log.
        """
        for count, notification in enumerate(notifications, start=1):
            event = notification.event
            self._observe(SessionId(event.originator_id), (event,))
            self._position = notification.position
            if count % self._every == 0:
                self._checkpoints.save_position(self._position)

    def save(self) -> None:
        """Keep a checkpoint of every live reading, and the position that was followed."""
        with self._lock:
            live = tuple(self._live.values())
        for readings in live:
            readings.save()
        self._checkpoints.save_position(self._position)

    def _observe(self, session_id: SessionId, events: Sequence[Recorded]) -> None:
        readings = self._readings(session_id)
        for model in self._models:
            try:
                readings.follow(model, events, events[0].seq)
            except ReadModelStuckError:
                log.exception("a read model of session %r stands still", session_id)
            except SessionNotFoundError:
                # It was deleted after the event was stored; there is nothing left to say of it.
                self._forget(session_id)
                return

    def _readings(self, session_id: str) -> SessionReadings:
        gone: list[SessionReadings] = []
        with self._lock:
            readings = self._live.pop(session_id, None)
            if readings is None:
                readings = SessionReadings(
                    session_id, self._sessions, self._checkpoints, self._every
                )
            self._live[session_id] = readings
            while len(self._live) > self._most_live:
                gone.append(self._live.popitem(last=False)[1])
        for old in gone:
            old.save()
        return readings

    def _forget(self, session_id: str) -> None:
        with self._lock:
            self._live.pop(session_id, None)
