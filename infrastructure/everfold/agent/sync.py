"""The agent for programs without an event loop: the same agent, on a loop in a thread of its own."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

from everfold.agent.agent import Agent
from everfold.agent.errors import AgentClosedError
from everfold.agent.inbox import Target
from everfold.agent.inputs import USER, Input
from everfold.agent.results import TurnResult
from everfold.session.frozen import Json

T = TypeVar("T")


class SyncAgent:
    """An `Agent` whose methods block. Leave its `with` block, or call `close`, when done.

        with SyncAgent(Agent(…)) as agent:
            print(agent.ask("hello").text)

    Safe for several threads. Watchers are called in the loop's thread.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._loop = asyncio.new_event_loop()
        self._works: set[asyncio.Task[Any]] = set()
        self._closing, self._gate = threading.RLock(), threading.Lock()
        self._is_closed = False
        self._is_running = True
        self._thread = threading.Thread(target=self._turn_over, name="everfold agent", daemon=True)
        self._thread.start()

    def ask(
        self, content: Input, *, key: str | None = None, source: Mapping[str, Json] = USER
    ) -> TurnResult:
        """Put something to the model and return what became of it; see `Agent.ask`.

        A KeyboardInterrupt cancels this ask, as `Agent.ask` says, waits until its turn is closed in
        the log, and is raised.
        """
        return self._run(self.agent.ask(content, key=key, source=source))

    def queue(
        self,
        content: Input,
        *,
        target: Target = "next-turn",
        key: str | None = None,
        source: Mapping[str, Json] = USER,
    ) -> str:
        """Store an input for later and return its message id; see `Agent.queue`."""
        return self._run(self.agent.queue(content, target=target, key=key, source=source))

    def run_queued(self) -> list[TurnResult]:
        """Run a turn for each input that waits; see `Agent.run_queued`."""
        return self._run(self.agent.run_queued())

    def cancel(self, kind: str = "user") -> None:
        """Stop the running turn, from any thread; the blocked `ask` returns when it is closed."""
        with suppress(RuntimeError):
            # Raised by a loop that is closed: nothing runs there any more.
            self._loop.call_soon_threadsafe(self.agent.cancel, kind)

    def close(self) -> None:
        """Close the agent, its routes' connections and its thread; a second call does nothing."""
        with self._closing:
            if self._loop.is_closed():
                return
            with self._gate:
                self._is_closed = True
            self._answered(self._begun(self._end()))
            self._loop.call_soon_threadsafe(self._stop)
            self._thread.join()
            self._loop.close()

    def _turn_over(self) -> None:
        """Run the loop until it is stopped, whatever a plugin raises through it.

        A task that raises SystemExit ends the loop's run; who waits for the task is told by the next.
        """
        while self._is_running:
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def _stop(self) -> None:
        self._is_running = False
        self._loop.stop()

    async def _end(self) -> None:
        try:
            await self.agent.close()
        finally:
            waiting = self._works - {asyncio.current_task()}
            if waiting:
                await asyncio.wait(waiting)
            await asyncio.get_running_loop().shutdown_default_executor()

    def __enter__(self) -> "SyncAgent":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the loop's thread and return its result."""
        with self._gate:
            # What passes here has begun before the end does, which waits for it.
            begun = None if self._is_closed else self._begun(work)
        if begun is None:
            work.close()
            raise AgentClosedError(f"the agent of session {self.agent.session_id!r} was closed")
        return self._answered(begun)

    def _begun(self, work: Coroutine[Any, Any, T]) -> "_Work[T]":
        begun: _Work[T] = _Work(work)
        self._loop.call_soon_threadsafe(begun.begin, self._loop, self._works)
        return begun

    def _answered(self, begun: "_Work[T]") -> T:
        """Wait for work; an interrupt cancels it, and is raised once it has ended."""
        try:
            return begun.answer.result()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(begun.cancel)
            concurrent.futures.wait((begun.answer,))
            raise


class _Work(Generic[T]):
    """Work of another thread in the loop's; `begin` and `cancel` are called in the loop's thread.

    Attributes:
        answer: its result, or what it raised.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self.answer: concurrent.futures.Future[T] = concurrent.futures.Future()

    def begin(self, loop: asyncio.AbstractEventLoop, works: "set[asyncio.Task[Any]]") -> None:
        """Start it, as one of `works` until it has ended."""
        self._task = loop.create_task(self._work)
        works.add(self._task)
        self._task.add_done_callback(works.discard)
        self._task.add_done_callback(self._hand_over)

    def cancel(self) -> None:
        """Cancel it."""
        if self._task is not None:
            self._task.cancel()

    def _hand_over(self, task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            self.answer.set_exception(concurrent.futures.CancelledError())
        elif (error := task.exception()) is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(task.result())
