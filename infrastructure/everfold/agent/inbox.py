"""Queued input: a fold of `agent/inbox/spliced`, and taking items out so that each is taken once."""

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.payload import check_message
from everfold.session.session import Session

Target = Literal["next-turn", "next-step"]

SPLICED = "agent/inbox/spliced"
_TARGETS: tuple[Target, ...] = ("next-turn", "next-step")


@dataclass(frozen=True, slots=True)
class Inbox:
    """The two queues as of a seq; a value.

    Attributes:
        next_turn: messages that each open a turn of their own.
        next_step: messages that join the next step, whichever it is.
        next_seq: the seq of the first event that is not folded.
    """

    next_turn: tuple[Json, ...] = ()
    next_step: tuple[Json, ...] = ()
    next_seq: int = 0

    def queue(self, target: Target) -> tuple[Json, ...]:
        """Return one of the queues."""
        return self.next_turn if target == "next-turn" else self.next_step

    def holds(self, message_id: str) -> bool:
        """Tell whether a message waits in one of the queues."""
        return any(item.get("id") == message_id for item in (*self.next_turn, *self.next_step))

    def followed(self, events: Iterable[EventLike]) -> "Inbox":
        """Return the inbox after further events."""
        inbox = self
        for event in events:
            if event.type == SPLICED:
                inbox = _spliced(inbox, event.data)
            inbox = replace(inbox, next_seq=event.seq + 1)
        return inbox


def _spliced(inbox: Inbox, data: Json) -> Inbox:
    """Apply one splice; data that other programs wrote in another form changes nothing."""
    target, start, inserted = data.get("target"), data.get("start"), data.get("inserted", [])
    removed = data.get("removedCount", 0)
    if target not in ("next-turn", "next-step") or not isinstance(inserted, list):
        return inbox
    if type(start) is not int or type(removed) is not int or start < 0 or removed < 0:
        return inbox
    queue = list(inbox.queue(target))
    queue[start : start + removed] = inserted
    if target == "next-turn":
        return replace(inbox, next_turn=tuple(queue))
    return replace(inbox, next_step=tuple(queue))


class InboxReader:
    """Folds the inbox of one session, each event once; safe for several threads."""

    def __init__(self, sessions: Sessions, session_id: str) -> None:
        self._sessions = sessions
        self._session_id = session_id
        self._lock = threading.Lock()
        self._known = Inbox()

    def at(self, session: Session) -> Inbox:
        """Return the inbox as of a view of the session; reads the events since the last call."""
        with self._lock:
            known = self._known
        if known.next_seq > session.next_seq:
            known = Inbox()
        if known.next_seq < session.next_seq:
            tail = self._sessions.log(
                self._session_id, first=known.next_seq, last=session.next_seq - 1
            )
            known = known.followed(tail)
        with self._lock:
            if known.next_seq >= self._known.next_seq:
                self._known = known
        return known

    def inherited(self, session: Session) -> Inbox:
        """Return the inbox that a fork took over, empty for other sessions; reads the prefix."""
        if session.inherited_count == 0:
            return Inbox()
        last = session.inherited_count - 1
        return Inbox().followed(self._sessions.log(self._session_id, last=last))


@dataclass(frozen=True, slots=True)
class Claim:
    """Items that are to be taken, and the events that take them."""

    messages: tuple[Json, ...]
    wishes: tuple[AppendEvent, ...]


def claim(inbox: Inbox, target: Target, count: int | None = None) -> Claim:
    """Return the claim of the first `count` items of a queue, of all if None.

    An item that is no message is taken out too, as cancelled: it could never be shown to a model.
    """
    queue = inbox.queue(target)
    messages: list[Json] = []
    wishes: list[AppendEvent] = []
    for item in queue:
        if count is not None and len(messages) == count:
            break
        if check_message(item, "user") is None:
            messages.append(item)
            wishes.append(_removal(target))
        else:
            wishes.append(_removal(target, outcome="canceled"))
    return Claim(tuple(messages), _joined(target, wishes))


def disowned(inherited: Inbox, inbox: Inbox) -> list[AppendEvent]:
    """Return the events that cancel what waited in the parent when a fork was made (C7).

    Args:
        inherited: the inbox at the cut.
        inbox: the inbox now.
    """
    gone = {item.get("id") for item in (*inherited.next_turn, *inherited.next_step)}
    return _cancelled(inbox, gone)


def withdrawal(inbox: Inbox, message_id: str) -> list[AppendEvent]:
    """Return the events that take a waiting message back, none if it waits no more."""
    return _cancelled(inbox, {message_id})


def _cancelled(inbox: Inbox, gone: Collection[Json]) -> list[AppendEvent]:
    wishes = []
    for target in _TARGETS:
        kept = 0
        for item in inbox.queue(target):
            if item.get("id") in gone:
                wishes.append(_removal(target, start=kept, outcome="canceled"))
            else:
                kept += 1
    return wishes


def _removal(target: Target, *, start: int = 0, **outcome: str) -> AppendEvent:
    data: Json = {"target": target, "start": start, "removedCount": 1, "inserted": [], **outcome}
    return AppendEvent(SPLICED, data)


def _joined(target: Target, removals: Sequence[AppendEvent]) -> tuple[AppendEvent, ...]:
    """Return one removal for all, where none of them is a cancellation."""
    if len(removals) < 2 or any("outcome" in wish.data for wish in removals):
        return tuple(removals)
    data: Json = {"target": target, "start": 0, "removedCount": len(removals), "inserted": []}
    return (AppendEvent(SPLICED, data),)


def insertion(
    inbox: Inbox, target: Target, message: Json, *, event_id: str | None = None
) -> AppendEvent:
    """Return the wish to put a message at the end of a queue."""
    data: Json = {"target": target, "start": len(inbox.queue(target)), "inserted": [message]}
    return AppendEvent(SPLICED, data, event_id=event_id)


def claim_next(reader: InboxReader, sessions: Sessions, session_id: str, target: Target) -> Json:
    """Take the first item of a queue, None if it is empty; of several workers one gets it (B5)."""
    taken: list[Json] = []

    def plan(session: Session) -> Sequence[AppendEvent]:
        wanted = claim(reader.at(session), target, 1)
        taken[:] = wanted.messages
        return wanted.wishes

    sessions.load(session_id)
    sessions.append_batch(session_id, plan)
    return taken[0] if taken else None
