"""Running a step's tool calls: several at once, each answered exactly once, whatever happens."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everfold.agent.cancelling import TurnCancellation, start, stop, stop_all, until_cancelled
from everfold.agent.content import NO_OUTPUT, AdmitImages, Content, content_of, parts_of, shortened
from everfold.agent.settings import Limits
from everfold.agent.tools import Tool, ToolArgumentsError, ToolContext, ToolOutput
from everfold.llm.wellformed import Repair, mended, well_formed
from everfold.session.frozen import Json


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model.

    Attributes:
        seq: of its `tool/call` event; None if it was never dispatched.
    """

    id: str
    name: str
    arguments: str
    seq: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The one answer to a call.

    Attributes:
        error: `{name, code, reason?}` for programs; the content says it to the model.
    """

    call: Call
    content: tuple[Json, ...]
    is_error: bool = False
    error: Mapping[str, Json] | None = None
    meta: Mapping[str, Json] | None = None
    repairs: tuple[Repair, ...] = ()

    def data(self, place: Mapping[str, int], message_id: str) -> dict[str, Json]:
        """Return the data of the `tool/result` event."""
        block: dict[str, Json] = {
            "type": "tool-result",
            "toolCallId": self.call.id,
            "content": list(self.content),
        }
        if self.is_error:
            block["isError"] = True
        body = {
            "id": message_id,
            "role": "user",
            "content": [block],
            "source": {"kind": "tool", "callId": self.call.id},
        }
        data: dict[str, Json] = {**place, "message": body}
        if self.error is not None:
            data["error"] = dict(self.error)
        if self.meta is not None:
            data["meta"] = dict(self.meta)
        return data


def failed(call: Call, name: str, code: str, text: str) -> Outcome:
    """Return the answer to a call that has no result."""
    clean = well_formed(text)[0]
    block = {"type": "text", "text": clean}
    return Outcome(call, (block,), is_error=True, error={"name": name, "code": code})


def not_run(call: Call, why: str) -> Outcome:
    """Return the answer to a call that was never started."""
    return failed(call, "ToolAbortedError", "ABORTED_BEFORE_DISPATCH", f"Not run: {why}.")


@dataclass(slots=True)
class ToolRunner:
    """Runs the calls of one step.

    Attributes:
        place: gives the context of a call.
        admit: stores images that tools return.
    """

    tools: Mapping[str, Tool]
    limits: Limits
    admit: AdmitImages | None
    cancellation: TurnCancellation
    place: Callable[[str], ToolContext]
    _free: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(max(self.limits.parallel_tools, 1))

    async def run(
        self, calls: Sequence[Call], settle: Callable[[Sequence[Outcome]], Awaitable[None]]
    ) -> None:
        """Run calls; `settle` is given the answers as they come, those at hand in call order.

        Raises:
            Exception: what `settle` raised; the tools that still run are stopped.
        """
        working = [start(self._answered(call), f"tool {call.name} {call.id}") for call in calls]
        waiting = list(working)
        try:
            while waiting:
                _, running = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if running:
                    await asyncio.wait(running, timeout=self.limits.gather_s)
                done = [task for task in waiting if task.done()]
                await settle([task.result() for task in done])
                waiting = [task for task in waiting if task not in done]
        finally:
            await stop_all(waiting, self.limits.grace_s)

    async def _answered(self, call: Call) -> Outcome:
        try:
            return await self._answer(call)
        except Exception as error:  # noqa: BLE001  # a stranger's validator or text; this call alone fails
            kind = type(error).__name__
            return failed(call, kind, "TOOL_FAILED", f"The tool could not be called: {kind}.")

    async def _answer(self, call: Call) -> Outcome:
        tool = self.tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self.tools)) or "none"
            text = f"There is no tool {call.name!r}. Tools: {known}."
            return failed(call, "UnknownToolError", "UNKNOWN_TOOL", text)
        async with self._free:
            if self.cancellation.is_set:
                return not_run(call, "the turn was cancelled")
            try:
                work = tool.bind(call.arguments, self.place(call.id))
            except ToolArgumentsError as error:
                return failed(call, "ToolArgumentsError", "INVALID_ARGUMENTS", str(error))
            return await self._run(call, tool, work)

    async def _run(self, call: Call, tool: Tool, work: Callable[[], Any]) -> Outcome:
        patience = self.limits.tool_timeout_s if tool.timeout_s is None else tool.timeout_s
        task = start(_result(work, is_async=tool.is_async), f"work of {call.id}")
        try:
            is_done = await until_cancelled(task, self.cancellation, patience)
            if not is_done:
                await stop(task, self.limits.grace_s)
                is_stopped = tool.is_async and task.done()
                return self._abandoned(call, patience, is_stopped=is_stopped)
            return await self._outcome(call, task)
        finally:
            task.cancel()

    def _abandoned(self, call: Call, patience: float, *, is_stopped: bool) -> Outcome:
        tail = "" if is_stopped else " It may still be running; check before calling it again."
        if self.cancellation.is_set:
            text = f"The turn was cancelled while this tool was running.{tail}"
            return failed(call, "ToolAbortedError", "ABORTED", text)
        text = f"The tool gave no result within {patience:g} seconds and was stopped.{tail}"
        return failed(call, "ToolTimeoutError", "TIMEOUT", text)

    async def _outcome(self, call: Call, task: "asyncio.Task[Any]") -> Outcome:
        if task.cancelled():
            return failed(call, "CancelledError", "TOOL_FAILED", "The tool cancelled itself.")
        error = task.exception()
        if error is not None:
            return _raised(call, error)
        value = task.result()
        try:
            content = await asyncio.to_thread(self._content, value)
        except Exception as fault:  # noqa: BLE001  # an admission may raise anything; this call alone fails
            return _raised(call, fault)
        is_error = isinstance(value, ToolOutput) and value.is_error
        meta = mended(value.meta)[0] if isinstance(value, ToolOutput) else None
        return Outcome(call, content.blocks, is_error, None, meta, content.repairs)

    def _content(self, value: object) -> Content:
        content = shortened(content_of(parts_of(value), self.admit), self.limits.result_chars)
        return content if content.blocks else Content(({"type": "text", "text": NO_OUTPUT},))


def _raised(call: Call, error: BaseException) -> Outcome:
    name = type(error).__name__
    return failed(call, name, "TOOL_FAILED", f"{name}: {error}"[:20_000])


async def _result(work: Callable[[], Any], *, is_async: bool) -> Any:
    """Return what a tool returns; a sync one runs in a thread that nothing waits for at exit."""
    value = work() if is_async else await _in_thread(work)
    try:
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:
        raise RuntimeError(f"the tool tried to end the process ({error.code})") from error


async def _in_thread(work: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        try:
            value, error = work(), None
        except BaseException as raised:  # noqa: BLE001  # whatever it is, the model is told
            value, error = None, raised
        try:
            loop.call_soon_threadsafe(_give, answer, value, error)
        except RuntimeError:
            return  # The loop is closed: nobody waits any more.

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="everfold tool", daemon=True).start()
    return await answer


def _give(answer: "asyncio.Future[Any]", value: object, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        answer.set_exception(error)
    else:
        answer.set_exception(RuntimeError(f"the tool raised {type(error).__name__}"))
