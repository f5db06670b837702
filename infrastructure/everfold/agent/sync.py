"""The agent for programs without an event loop: the same agent, on a loop in a thread of its own."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, TypeVar

from everfold.agent.agent import Agent
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
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="everfold agent", daemon=True
        )
        self._thread.start()

    def ask(
        self, content: Input, *, key: str | None = None, source: Mapping[str, Json] = USER
    ) -> TurnResult:
        """Put something to the model and return what became of it; see `Agent.ask`.

        A KeyboardInterrupt cancels the turn, waits until it is closed in the log, and is raised.
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
        self._loop.call_soon_threadsafe(self.agent.cancel, kind)

    def close(self) -> None:
        """Close the agent and end its thread; a second call does nothing."""
        if self._loop.is_closed():
            return
        self._run(self.agent.close())
        self._run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

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
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            self.cancel()
            concurrent.futures.wait((future,))
            raise
