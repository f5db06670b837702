"""One session's log as the loop uses it: off the event loop's thread, owned turn checked, watchers told."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from everfold.agent.errors import TakenOverError
from everfold.agent.inbox import InboxReader
from everfold.agent.requests import tells_of_summary, turn_seq
from everfold.host.access import HostedSession
from everfold.host.sessions import Sessions
from everfold.llm.chunks import Chunk
from everfold.session.access import Planner
from everfold.session.deciding import AppendEvent
from everfold.session.events import Origin, Recorded
from everfold.session.session import Session

log = logging.getLogger("everfold.agent")

ACTOR = "agent"


def fixed(batch: Sequence[AppendEvent]) -> Planner:
    """Return the plan that is the same on every history."""
    return lambda _session: batch


class Watcher(Protocol):
    """Watches an agent; what it raises is logged and changes nothing."""

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        """Be told of a piece of an answer, while it arrives; it is not stored yet."""
        ...

    def on_events(self, events: Sequence[Recorded]) -> None:
        """Be told what the agent has stored; each event once, in order of seq."""
        ...


@dataclass(frozen=True, slots=True)
class OwnedTurn:
    """The turn that an agent has opened and may go on with.

    Attributes:
        start_seq: of its `turn/start`.
    """

    session_id: str
    turn: int
    start_seq: int

    def is_open_in(self, session: Session) -> bool:
        """Tell whether the turn is still the open one."""
        start = session.latest("turn/start")
        return start is not None and start.seq == self.start_seq and session.is_turn_open

    def check(self, session: Session) -> None:
        """Refuse to go on if the turn is no longer open, or no longer ours (B8).

        Raises:
            TakenOverError: another process has closed it.
        """
        if not self.is_open_in(session):
            raise TakenOverError(self.session_id, self.turn, self.start_seq)


@dataclass(slots=True)
class SessionLog:
    """The log of one session.

    Attributes:
        inbox: folds the queued input.
        watchers: are told of chunks and stored events.
    """

    sessions: Sessions
    session_id: str
    watchers: list[Watcher] = field(default_factory=list)
    inbox: InboxReader = field(init=False)
    access: HostedSession = field(init=False)
    _telling: asyncio.Lock = field(default_factory=asyncio.Lock)
    _next_told: int | None = None

    def __post_init__(self) -> None:
        self.inbox = InboxReader(self.sessions, self.session_id)
        self.access = HostedSession(self.sessions, self.session_id, Origin(actor=ACTOR))

    def new_id(self) -> str:
        """Return a fresh id for a message."""
        return self.sessions.means.new_id()

    def now(self) -> int:
        """Return the time in milliseconds."""
        return self.sessions.means.clock()

    async def load(self) -> Session:
        """Return the session as the store has it now (C10)."""
        session = await asyncio.to_thread(self.access.view)
        await self._tell_upto(session.next_seq)
        return session

    async def request_seq(self, session: Session) -> int:
        """Return the seq by which the request is rebuilt that is built from a session."""
        if not tells_of_summary(session.state.last):
            return session.next_seq - 1
        return await asyncio.to_thread(turn_seq, self.sessions, session)

    async def append(
        self,
        plan: Planner,
        *,
        owned: OwnedTurn | None = None,
        request_seq: int | None = None,
    ) -> tuple[Recorded, ...]:
        """Store what a plan decides, in one commit, and tell the watchers.

        Args:
            plan: is asked again after a lost race.
            owned: the turn that must still be ours, checked with each plan.
            request_seq: the seq by which the request is rebuilt which these events settle; kept
                beside them, for audits.

        Raises:
            TakenOverError: the turn is not ours any more; nothing was stored.
            SessionError: refused; nothing was stored.
        """

        def checked(session: Session) -> Sequence[AppendEvent]:
            if owned is not None:
                owned.check(session)
            return plan(session)

        correlation = None if request_seq is None else f"request:{request_seq}"
        origin = Origin(ACTOR, correlation)
        events = await asyncio.to_thread(
            self.sessions.append_batch, self.session_id, checked, origin=origin
        )
        if events:
            await self._tell_upto(events[-1].seq + 1, events)
        return events

    async def _tell_upto(self, next_seq: int, events: Sequence[Recorded] = ()) -> None:
        """Tell the watchers what is new: each event once, in order, whoever stored it."""
        async with self._telling:
            first = next_seq if self._next_told is None else self._next_told
            if next_seq <= first:
                self._next_told = first
                return
            if self.watchers and (not events or events[0].seq > first):
                events = await asyncio.to_thread(self._read, first, next_seq - 1)
            fresh = [event for event in events if event.seq >= first]
            self._next_told = next_seq
            if fresh:
                self.tell(lambda watcher: watcher.on_events(fresh))

    def _read(self, first: int, last: int) -> list[Recorded]:
        return list(self.sessions.log(self.session_id, first=first, last=last))

    def tell(self, say: Callable[[Watcher], None]) -> None:
        """Tell every watcher; one that raises is named in the program's own log and passed over."""
        for watcher in tuple(self.watchers):
            try:
                say(watcher)
            except Exception:  # a watcher may raise anything; the turn goes on
                log.exception("a watcher of session %r failed", self.session_id)
