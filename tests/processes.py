"""Runs functions in processes of their own, all started at once, and hands back what they return."""

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.synchronize import Barrier
from typing import Generic, TypeVar

T = TypeVar("T")

PATIENCE_S = 120.0
"""After so long a hanging process fails its test; nothing is measured by it."""

CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "everfold.store.urls",
        "everfold.store.contract.rows",
        "psycopg",
        "everfold.agent.agent",
        "everfold.routes.openai_chat",
    ]
)


class Worker(Generic[T]):
    """One process that runs one function; its reports arrive on `pipe`.

    The function's last argument is the pipe's other end when `reports` is true.
    """

    def __init__(
        self,
        work: Callable[..., T],
        *arguments: object,
        barrier: Barrier | None = None,
        reports: bool = False,
    ) -> None:
        self.pipe, theirs = CONTEXT.Pipe()
        self.process: ForkServerProcess = CONTEXT.Process(
            target=_run, args=(theirs, barrier, reports, work, arguments), daemon=True
        )
        self.process.start()
        theirs.close()

    def result(self) -> T:
        """Return what the function returned.

        Raises:
            AssertionError: it failed (with its traceback), hangs, or its process was killed.
        """
        try:
            kind, value = self._receive()
        finally:
            self.pipe.close()
            self.process.kill()
            self.process.join(PATIENCE_S)
        assert kind == "returned", f"the process failed:\n{value}"
        return value

    def _receive(self) -> tuple[str, T]:
        assert self.pipe.poll(PATIENCE_S), "the process hangs"
        try:
            kind, value = self.pipe.recv()
        except EOFError:
            return "died", None  # type: ignore[return-value]  # only reported, never returned
        return kind, value


def _run(
    pipe: Connection,
    barrier: Barrier | None,
    reports: bool,
    work: Callable[..., object],
    arguments: Sequence[object],
) -> None:
    try:
        if barrier is not None:
            barrier.wait(PATIENCE_S)
        result = work(*arguments, pipe) if reports else work(*arguments)
    except Exception:  # noqa: BLE001 - whatever it is, the test that waits must see it
        pipe.send(("failed", traceback.format_exc()))
    else:
        pipe.send(("returned", result))


def run_at_once(work: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> list[T]:
    """Run the function once for each tuple of arguments, each in a process, started together.

    Raises:
        AssertionError: one of them failed.
    """
    barrier = CONTEXT.Barrier(len(arguments))
    workers = [Worker(work, *each, barrier=barrier) for each in arguments]
    return [worker.result() for worker in workers]
