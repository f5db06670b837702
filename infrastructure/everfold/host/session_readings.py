"""The read models of one session, as far as they have read; from checkpoints where these fit."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from everfold.host.checkpoints import Checkpoints
from everfold.host.sessions import Sessions
from everfold.plugins.read_models import Reading, ReadModel
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.ids import version_of

log = logging.getLogger("everfold.host")


class SessionReadings:
    """Readings of one session; one thread at a time.

    Args:
        every: a checkpoint is kept each time so many events came.
    """

    def __init__(
        self, session_id: str, sessions: Sessions, checkpoints: Checkpoints, every: int
    ) -> None:
        self._session_id = session_id
        self._sessions = sessions
        self._checkpoints = checkpoints
        self._every = every
        self._lock = threading.RLock()
        self._readings: dict[str, Reading[Any]] = {}
        self._saved: dict[str, int] = {}

    def view(self, model: ReadModel[Any]) -> Json:
        """Return what a read model says, up to date with the store."""
        with self._lock:
            reading = self._reading(model)
            self._feed(reading, self._rest(reading))
            return reading.view()

    def start_anew(self, model: ReadModel[Any]) -> None:
        """Drop what was folded; the log is read from its first event on."""
        with self._lock:
            self._readings[model.name] = Reading(model)
            self._saved[model.name] = 0

    def follow(self, model: ReadModel[Any], events: Iterable[Recorded], first: int) -> None:
        """Fold events that were stored, and what came before them if that was not read yet.

        Args:
            first: the seq of the first of them.
        """
        with self._lock:
            reading = self._reading(model)
            self._feed(reading, events if first <= reading.next_seq else self._rest(reading))

    def save(self) -> None:
        """Keep checkpoints of all readings."""
        with self._lock:
            for reading in self._readings.values():
                self._save(reading)

    def _feed(self, reading: Reading[Any], events: Iterable[Recorded]) -> None:
        try:
            reading.read(events)
        finally:
            if reading.next_seq - self._saved.get(reading.model.name, 0) >= self._every:
                self._save(reading)

    def _rest(self, reading: Reading[Any]) -> Iterable[Recorded]:
        return self._sessions.log(self._session_id, first=reading.next_seq)

    def _reading(self, model: ReadModel[Any]) -> Reading[Any]:
        reading = self._readings.get(model.name)
        if reading is None or reading.model is not model:
            reading = self._restored(model)
            self._readings[model.name] = reading
            self._saved[model.name] = reading.next_seq
        return reading

    def _restored(self, model: ReadModel[Any]) -> Reading[Any]:
        """Return a reading that goes on from its checkpoint, if that is of this very log."""
        kept = self._checkpoints.load(self._session_id, model.name)
        if kept is None or self._last_event_id(kept[0].next_seq) != kept[1]:
            return Reading(model)
        return _tried(lambda: Reading(model, kept[0]), model)

    def _save(self, reading: Reading[Any]) -> None:
        event_id = self._last_event_id(reading.next_seq)
        if event_id is not None:
            self._checkpoints.save(self._session_id, reading.checkpoint(), event_id)
            self._saved[reading.model.name] = reading.next_seq

    def _last_event_id(self, next_seq: int) -> str | None:
        """Return the id of the event before a seq, None if there is no such event."""
        if next_seq < 1:
            return None
        rows = self._sessions.store.read_versions(self._session_id, (version_of(next_seq - 1),))
        return rows[0].event_id if rows else None


def _tried(restore: Callable[[], Reading[Any]], model: ReadModel[Any]) -> Reading[Any]:
    try:
        return restore()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        # A checkpoint that cannot be read is no loss: the log has everything.
        log.warning("a checkpoint of read model %r is damaged; it is made anew", model.name)
        return Reading(model)
