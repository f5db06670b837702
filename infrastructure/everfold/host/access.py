"""Lends one session of a host to plugins and to the agent loop."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from everfold.host.sessions import Sessions
from everfold.session.access import Planner
from everfold.session.deciding import AppendEvent
from everfold.session.events import NO_ORIGIN, Origin, Recorded
from everfold.session.session import Session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostedSession:
    """One live session of a host; safe for several threads.

    Attributes:
        origin: written beside every event that is appended through it.
    """

    sessions: Sessions
    session_id: str
    origin: Origin = NO_ORIGIN

    def view(self) -> Session:
        """Return the session as the store has it now; the caller's own."""
        return self.sessions.load(self.session_id)

    def append(self, batch: Sequence[AppendEvent] | Planner) -> Sequence[Recorded]:
        """Decide and store a batch, all or none; an empty plan stores nothing.

        Raises:
            SessionError: refused; nothing changed.
        """
        return self.sessions.append_batch(self.session_id, batch, origin=self.origin)

    async def aside(self, work: Callable[[], T]) -> T:
        """As `SessionAccess.aside`, in a thread."""
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await finished(working)
            raise


async def finished(work: "asyncio.Future[T]") -> None:
    """Wait until work is done, however often the waiting itself is cancelled."""
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            continue
    if not work.cancelled():
        # Take note of what it raised, so that nobody reports it as never retrieved.
        work.exception()
