"""How plugins reach a live session: they read it as it is, and append decisions of their own."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from everfold.session.deciding import AppendEvent
from everfold.session.events import Recorded
from everfold.session.session import Session

T = TypeVar("T")

Planner = Callable[[Session], Sequence[AppendEvent]]
"""Decides what to append, given the session as it is; asked again after a lost race."""


class SessionAccess(Protocol):
    """One live session, as the host lends it to plugins.

    `view` and `append` block; whoever runs in an event loop calls them in an `aside`.
    """

    @property
    def session_id(self) -> str:
        """The session's id."""
        ...

    def view(self) -> Session:
        """Return the session as the store has it now; the caller's own."""
        ...

    def append(self, batch: Sequence[AppendEvent] | Planner) -> Sequence[Recorded]:
        """Decide and store a batch, all or none; an empty plan stores nothing.

        Raises:
            SessionError: refused; nothing changed.
        """
        ...

    async def aside(self, work: Callable[[], T]) -> T:
        """Return what blocking work with the session returns, done beside the event loop.

        If the calling task is cancelled, the cancellation goes on when the work is done: whatever
        it stores is stored before anything that comes later.
        """
        ...
