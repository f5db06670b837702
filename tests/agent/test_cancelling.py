"""Cancellation at every point: what was delivered is kept, every call is answered, the session goes on."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest

from everfold.agent.agent import Agent
from everfold.agent.errors import AgentClosedError
from everfold.agent.settings import Limits
from everfold.agent.streaming import Live, Stored
from everfold.agent.tools import ToolContext
from everfold.llm.chunks import BlockEnd, Chunk, TextDelta, ToolCallDelta
from everfold.plugins.waterfalls import (
    PreStepAnswer,
    PreStepQuestion,
    RequestErrorAnswer,
    RequestErrorQuestion,
)
from everfold.routes.scripted import calls, fails, hangs, says
from everfold.session.events import Recorded
from tests.agent.kit import Host, run, shown, unanswered


class CancellingAt:
    """Cancels an agent's turn when a chunk or an event of a type is told."""

    def __init__(self, agent: Agent, what: type[Chunk] | str) -> None:
        self._agent, self._what = agent, what
        agent.watch(self)

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        if isinstance(self._what, type) and isinstance(chunk, self._what):
            self._agent.cancel()

    def on_events(self, events: Sequence[Recorded]) -> None:
        if any(event.type == self._what for event in events):
            self._agent.cancel()


def test_the_delivered_prefix_is_kept_and_marked(host: Host) -> None:
    route = host.route(hangs(TextDelta(0, "half a thou")), says("whole"))
    agent = host.agent(route)
    CancellingAt(agent, TextDelta)

    result = run(agent.ask("think"))

    assert (result.kind, result.text) == ("aborted", "half a thou")
    stored = host.data(agent.session_id, "assistant/message")[0]
    assert stored["interrupted"] is True
    finish = stored["stream"][-1]["chunk"]["reason"]
    assert (finish["kind"], finish["failure"]["code"]) == ("aborted", "CANCELLED")
    assert host.data(agent.session_id, "turn/end")[0]["reason"] == {
        "kind": "aborted",
        "reason": {"kind": "user"},
    }


def test_the_session_goes_on_after_a_cancellation(host: Host) -> None:
    route = host.route(hangs(TextDelta(0, "half")), says("whole"))
    agent = host.agent(route)
    CancellingAt(agent, TextDelta)
    run(agent.ask("think"))

    assert run(host.agent(route, agent.session_id).ask("again")).text == "whole"
    assert "assistant: half" in shown(route)


def test_a_cancellation_before_anything_came_is_an_attempt(host: Host) -> None:
    route = host.route(hangs())
    agent = host.agent(route)

    async def talk() -> str:
        asking = asyncio.create_task(agent.ask("hi"))
        while not route.sent:
            await asyncio.sleep(0)
        agent.cancel()
        return (await asking).kind

    assert run(talk()) == "aborted"
    assert host.types(agent.session_id)[-3:] == ["assistant/attempt", "step/end", "turn/end"]


@pytest.mark.parametrize("point", ["turn/start", "request/header"])
def test_a_cancelled_turn_asks_no_model(host: Host, point: str) -> None:
    route = host.route()
    agent = host.agent(route)
    CancellingAt(agent, point)

    assert run(agent.ask("hi")).kind == "aborted"
    assert route.sent == []


def test_calls_that_were_complete_are_answered_and_half_ones_dropped(host: Host) -> None:
    whole = {"type": "tool-call", "id": "c1", "name": "x", "arguments": "{}"}
    agent = host.agent(host.route(hangs(BlockEnd(0, whole), ToolCallDelta(1, "c2", '{"a', "x"))))
    CancellingAt(agent, ToolCallDelta)

    run(agent.ask("go"))

    assert unanswered(host.log(agent.session_id)) == {}
    result = host.data(agent.session_id, "tool/result")[0]
    assert result["error"]["code"] == "ABORTED_BEFORE_DISPATCH"
    assert host.data(agent.session_id, "tool/call") == []


@pytest.mark.parametrize("is_async", [True, False])
def test_running_tools_are_stopped_and_answered(host: Host, is_async: bool) -> None:
    release = threading.Event()
    stopped: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def wait_async() -> None:
        agent.cancel()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("async")

    def wait_sync(context: ToolContext) -> None:
        loops[0].call_soon_threadsafe(agent.cancel)
        while not context.cancellation.is_set:
            release.wait(0.01)
        stopped.append("sync")
        release.set()

    route = host.route(calls(("c", "wait_async" if is_async else "wait_sync", {})))
    agent = host.agent(route, tools=[wait_async, wait_sync])

    async def talk() -> str:
        loops.append(asyncio.get_running_loop())
        return (await agent.ask("go")).kind

    assert run(talk()) == "aborted"
    assert is_async or release.wait(30)
    assert stopped == ["async" if is_async else "sync"]
    assert host.data(agent.session_id, "tool/result")[0]["error"]["code"] == "ABORTED"
    assert unanswered(host.log(agent.session_id)) == {}


def test_tools_that_wait_for_their_turn_are_not_started(host: Host) -> None:
    ran: list[int] = []

    async def work(number: int) -> None:
        ran.append(number)
        agent.cancel()
        await asyncio.Event().wait()

    wanted = [(f"c{number}", "work", {"number": number}) for number in range(3)]
    agent = host.agent(
        host.route(calls(*wanted)), tools=[work], limits=Limits(parallel_tools=1, grace_s=1)
    )

    run(agent.ask("go"))

    codes = [data["error"]["code"] for data in host.data(agent.session_id, "tool/result")]
    assert (ran, codes) == ([0], ["ABORTED", *["ABORTED_BEFORE_DISPATCH"] * 2])


def test_a_tool_that_will_not_stop_is_left_behind(host: Host) -> None:
    async def stubborn() -> None:
        agent.cancel()
        while not over:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    over: list[bool] = []
    agent = host.agent(
        host.route(calls(("c", "stubborn", {}))), tools=[stubborn], limits=Limits(grace_s=0.05)
    )

    async def talk() -> str:
        kind = (await agent.ask("go")).kind
        over.append(True)
        return kind

    assert run(talk()) == "aborted"


def test_a_caller_that_is_cancelled_leaves_a_closed_turn(host: Host) -> None:
    agent = host.agent(host.route(hangs(TextDelta(0, "half"))))
    begun = asyncio.Event()

    class Begun:
        def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
            begun.set()

        def on_events(self, events: Sequence[Recorded]) -> None:
            return

    async def talk() -> None:
        agent.watch(Begun())
        asking = asyncio.create_task(agent.ask("think"))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    run(talk())

    assert host.types(agent.session_id)[-3:] == ["assistant/message", "step/end", "turn/end"]


def test_leaving_a_stream_cancels_the_turn(host: Host) -> None:
    agent = host.agent(host.route(hangs(TextDelta(0, "half"))))

    async def talk() -> None:
        stream = agent.stream("think")
        async for item in stream:
            if isinstance(item, Live):
                break
        await stream.aclose()

    run(talk())

    assert host.data(agent.session_id, "turn/end")[0]["reason"]["kind"] == "aborted"


def test_a_stream_yields_pieces_without_and_events_with_a_seq_m3(host: Host) -> None:
    agent = host.agent(host.route(says("hello")))

    async def talk() -> tuple[str, list[int]]:
        said, seqs = "", []
        async for item in agent.stream("hi"):
            match item:
                case Live(chunk=TextDelta(text=text)):
                    said += text
                case Stored(event):
                    seqs.append(event.seq)
        return said, seqs

    assert run(talk()) == ("hello", list(range(len(host.log(agent.session_id)))))


def test_a_failure_comes_out_of_a_stream(host: Host) -> None:
    agent = host.agent(host.route(), host.sessions.create("nowhere"))
    host.sessions.delete("nowhere")

    async def talk() -> None:
        async for _ in agent.stream("hi"):
            pass

    with pytest.raises(Exception, match="nowhere"):
        run(talk())


def test_a_closed_agent_takes_no_input(host: Host) -> None:
    agent = host.agent(host.route(hangs()))

    async def talk() -> str:
        asking = asyncio.create_task(agent.ask("hi"))
        while not host.data(agent.session_id, "request/header"):
            await asyncio.sleep(0.01)
        await agent.close()
        with pytest.raises(AgentClosedError):
            await agent.ask("more")
        return (await asking).kind

    assert run(talk()) == "aborted"
    reason = host.data(agent.session_id, "turn/end")[0]["reason"]["reason"]
    assert reason == {"kind": "disposed"}


def test_nothing_is_cancelled_when_nothing_runs(host: Host) -> None:
    assert host.agent(host.route()).cancel() is False


def test_a_plugin_that_hangs_before_a_step_does_not_hold_a_cancelled_turn(host: Host) -> None:
    route = host.route(says("never asked"))
    agent = host.agent(route)

    async def hanging(
        _question: PreStepQuestion, _otherwise: Callable[[], Awaitable[PreStepAnswer]]
    ) -> PreStepAnswer:
        agent.cancel()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets the event")

    host.mounted.waterfalls.pre_step.register("hanging", hanging)

    result = run(agent.ask("go"))

    assert result.kind == "aborted"
    assert route.sent == []


def test_a_plugin_that_hangs_over_a_failure_does_not_hold_a_cancelled_turn(host: Host) -> None:
    route = host.route(fails("SERVER"), says("never asked"))
    agent = host.agent(route)

    async def hanging(
        _question: RequestErrorQuestion, _otherwise: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        agent.cancel()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets the event")

    host.mounted.waterfalls.request_error.register("hanging", hanging)

    result = run(agent.ask("go"))

    assert result.kind == "aborted"
    assert len(route.sent) == 1
