"""Stopping a turn at any point: one flag that is asked, waited for, and read by tools' threads."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from everfold.session.frozen import Json

T = TypeVar("T")


class ProgramEndError(Exception):
    """Carries a plugin's wish to end the program to where the turn is closed for it.

    Raised in a task as it is, a SystemExit would leave the event loop at once, and the turn open.

    Attributes:
        raised: the SystemExit or KeyboardInterrupt.
    """

    def __init__(self, raised: BaseException) -> None:
        super().__init__(repr(raised))
        self.raised = raised


async def carried(work: Coroutine[Any, Any, T]) -> T:
    """Await work; its wish to end the program comes as a ProgramEndError."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as raised:
        raise ProgramEndError(raised) from raised


class TurnCancellation:
    """Says whether a turn was asked to stop, and by whom (`turn/end`, reason `aborted`)."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason: dict[str, Json] | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was asked."""
        return self.reason is not None

    def set(self, kind: str = "user") -> None:
        """Ask the turn to stop; the first reason stays. Call it in the loop's own thread."""
        if self.reason is None:
            self.reason = {"kind": kind}
            self._event.set()

    async def wait(self) -> None:
        """Return when it is asked."""
        await self._event.wait()


async def until_cancelled(
    work: "asyncio.Task[T]", cancellation: TurnCancellation, timeout_s: float | None
) -> bool:
    """Wait for a task, a cancellation, or the end of patience; tell whether the task is done."""
    stop = asyncio.ensure_future(cancellation.wait())
    try:
        await asyncio.wait({work, stop}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
    return work.done()


async def stop_all(works: "Sequence[asyncio.Task[T]]", grace_s: float) -> None:
    """Cancel several tasks at once; those that will not stop within one grace are left behind."""
    await asyncio.gather(*(stop(work, grace_s) for work in works))


async def stop(work: "asyncio.Task[T]", grace_s: float) -> None:
    """Cancel a task and give it time to clean up; one that will not stop is left behind."""
    work.cancel()
    await asyncio.wait({work}, timeout=grace_s)
    if work.done() and not work.cancelled():
        # Take note of what it raised, so that nobody reports it as never retrieved.
        work.exception()


def start(coroutine: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
    """Return a running task with a name for debuggers."""
    return asyncio.create_task(coroutine, name=name)


def is_own_failure(raised: BaseException) -> bool:
    """Tell whether something raised in the running task is a failure, and no wish to stop the task.

    Work that somebody else cancelled raises the same error as a task that is asked to stop.
    """
    if not isinstance(raised, asyncio.CancelledError):
        return isinstance(raised, Exception)
    task = asyncio.current_task()
    return task is not None and task.cancelling() == 0
