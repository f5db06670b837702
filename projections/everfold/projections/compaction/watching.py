"""What automatic compactions go by: the meter of each live session, and when one was tried last (D6)."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from everfold.projections.compaction import wishes
from everfold.projections.token_meter.errors import MeterError
from everfold.projections.token_meter.meter import READ_TYPES, Metered, stepped
from everfold.session.events import EventLike

LogOf = Callable[[str, int], Iterable[EventLike]]
"""Gives the stored events of a session from a seq on."""

_REMEMBERED = 256
_ATTEMPTS = frozenset((wishes.START, wishes.END, wishes.SKIPPED))
_WORDS = frozenset(("turn/start", "user/message"))


@dataclass(frozen=True, slots=True)
class Attempts:
    """The newest attempt to summarise, and the newest words of a user; a value.

    Attributes:
        words_seq: the newest turn's start, or message of the user in it.
        tried_seq: the newest attempt; -1 if there was none.
        skipped_seq: the newest reason why none was made.
        total_after: the running total after it, if it was successful.
    """

    words_seq: int = -1
    tried_seq: int = -1
    skipped_seq: int = -1
    total_after: int | None = None

    def after(self, event: EventLike, total: int) -> "Attempts":
        """Return this with one more event.

        Args:
            total: the running total after the event.
        """
        if event.type == wishes.END:
            is_done = isinstance(event.data, dict) and "error" not in event.data
            return replace(self, total_after=total if is_done else None)
        if event.type == wishes.START:
            return replace(self, tried_seq=event.seq, total_after=None)
        if event.type == wishes.SKIPPED:
            return self._skipped(event)
        if event.type == "turn/start" or _is_words(event):
            return replace(self, words_seq=event.seq)
        return self

    def _skipped(self, event: EventLike) -> "Attempts":
        trigger = event.data.get("trigger") if isinstance(event.data, dict) else None
        if trigger == "overflow":
            return replace(self, tried_seq=event.seq, skipped_seq=event.seq, total_after=None)
        return replace(self, skipped_seq=event.seq)

    def allows(self, trigger: str, total: int, regrown: int) -> bool:
        """Tell whether an automatic attempt may be made.

        One for each message of a user; a second one only after a success, and once the
        conversation has grown again. What was not worth an attempt under pressure may be worth
        one after an overflow.

        Args:
            total: the running total now.
            regrown: by how many tokens it must have grown.
        """
        if trigger == "pressure" and self.skipped_seq > max(self.words_seq, self.tried_seq):
            return False
        if self.tried_seq < self.words_seq or self.tried_seq < 0:
            return True
        return self.total_after is not None and total - self.total_after >= regrown


def _is_words(event: EventLike) -> bool:
    if event.type != "user/message" or not isinstance(event.data, dict):
        return False
    source = event.data.get("source")
    return isinstance(source, dict) and source.get("kind") == "user"


@dataclass(frozen=True, slots=True)
class Watched:
    """What is known of one session.

    Attributes:
        fault: why its meter cannot go on; its estimate is then not used.
    """

    next_seq: int = 0
    meter: Metered = field(default_factory=Metered)
    attempts: Attempts = field(default_factory=Attempts)
    fault: MeterError | None = None

    def after(self, event: EventLike) -> "Watched":
        """Return this with one more event."""
        meter, fault = self.meter, self.fault
        if fault is None and event.type in READ_TYPES:
            try:
                meter = stepped(meter, event)
            except MeterError as error:
                fault = error
        attempts = self.attempts
        if event.type in _ATTEMPTS or event.type in _WORDS:
            attempts = attempts.after(event, meter.total)
        return Watched(event.seq + 1, meter, attempts, fault)


class SessionWatch:
    """Keeps the newest sessions' meters; costs the events that came since it last looked."""

    def __init__(self, log_of: LogOf) -> None:
        self._lock = threading.Lock()
        self._log_of = log_of
        self._watched: dict[str, Watched] = {}

    def at(self, session_id: str) -> Watched:
        """Return what the stored log of a session adds up to now."""
        with self._lock:
            watched = self._watched.pop(session_id, None) or Watched()
            for event in self._log_of(session_id, watched.next_seq):
                watched = watched.after(event)
            self._watched[session_id] = watched
            while len(self._watched) > _REMEMBERED:
                del self._watched[next(iter(self._watched))]
            return watched
