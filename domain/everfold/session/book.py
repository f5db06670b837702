"""The message-producing events of a session, found by seq; older ones are fetched when asked for."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from everfold.session.errors import CorruptStreamError
from everfold.session.events import EventLike
from everfold.session.growing import Growing

Fetch = Callable[[Sequence[int]], Iterable[EventLike]]
"""Reads the message-producing events with these seqs, and no others, from where they are stored."""


def _seq(event: EventLike) -> int:
    return event.seq


def find_by_seq(events: Sequence[EventLike], seq: int) -> EventLike | None:
    """Return the event with this seq from events in ascending order, None if it is not there."""
    position = bisect_left(events, seq, key=_seq)
    if position < len(events) and events[position].seq == seq:
        return events[position]
    return None


def nothing(_seqs: Sequence[int]) -> Iterable[EventLike]:
    """Fetch for a book that is complete in memory."""
    return ()


class EventBook:
    """A value; `extended` gives a longer one. Events below `complete_from` are fetched once.

    Args:
        stream_id: the stream that events are fetched from, for errors.
    """

    __slots__ = ("_events", "_fetch", "_fetched", "_stream_id", "complete_from")

    def __init__(
        self,
        events: Growing[EventLike],
        *,
        complete_from: int = 0,
        fetch: Fetch = nothing,
        fetched: dict[int, EventLike] | None = None,
        stream_id: str = "",
    ) -> None:
        self._events = events
        self._stream_id = stream_id
        self.complete_from = complete_from
        self._fetch = fetch
        self._fetched: dict[int, EventLike] = {} if fetched is None else fetched

    def extended(self, more: Sequence[EventLike]) -> "EventBook":
        """Return this book followed by later events."""
        if not more:
            return self
        return EventBook(
            self._events.extended(more),
            complete_from=self.complete_from,
            fetch=self._fetch,
            fetched=self._fetched,
            stream_id=self._stream_id,
        )

    def find(self, seq: int) -> EventLike | None:
        """Return the message-producing event with this seq, None if there is none."""
        if seq < self.complete_from:
            return self._find_stored(seq)
        return find_by_seq(self._events, seq)

    def node(self, seq: int) -> EventLike:
        """Return the event of a node.

        Raises:
            CorruptStreamError: its row is no longer stored; or the session was deleted meanwhile.
        """
        event = self.find(seq)
        if event is None:
            raise CorruptStreamError(self._stream_id, seq, "the row is missing")
        return event

    def prefetch(self, seqs: Iterable[int]) -> None:
        """Fetch those of these events that are not in memory, in one read."""
        missing = [s for s in seqs if s < self.complete_from and s not in self._fetched]
        if missing:
            self._fetched.update((event.seq, event) for event in self._fetch(missing))

    def _find_stored(self, seq: int) -> EventLike | None:
        if seq < 0:
            return None
        if seq not in self._fetched:
            self.prefetch((seq,))
        return self._fetched.get(seq)
