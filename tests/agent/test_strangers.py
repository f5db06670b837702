"""Plugins and tools that end in ways of their own: the turn is told, closed, and goes on."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from everfold.agent.settings import Limits
from everfold.agent.tools import tool
from everfold.plugins.waterfalls import (
    PreStepAnswer,
    PreStepQuestion,
    RequestErrorAnswer,
    RequestErrorQuestion,
)
from everfold.routes.scripted import calls, fails, says
from tests.agent.faults import failing
from tests.agent.kit import PATIENCE_S, Host, png, run, shown


async def cancelled_within() -> None:
    """Wait for work that somebody else cancels."""
    work = asyncio.ensure_future(asyncio.sleep(PATIENCE_S))
    asyncio.get_running_loop().call_soon(work.cancel)
    await work


def test_a_plugin_whose_own_work_is_cancelled_is_named_and_passed_over(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(
        question: PreStepQuestion, ask_next: Callable[[], Awaitable[PreStepAnswer]]
    ) -> PreStepAnswer:
        await cancelled_within()
        raise AssertionError("it was cancelled")

    host.mounted.waterfalls.pre_step.register("acme-slow", broken)
    agent = host.agent(host.route(says("fine")))

    result = run(agent.ask("hi"))

    assert (result.kind, result.text) == ("completed", "fine")
    assert "plugin 'acme-slow' failed in a waterfall" in caplog.text


def test_the_plugins_after_one_whose_work_is_cancelled_are_asked(host: Host) -> None:
    async def broken(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        await cancelled_within()
        raise AssertionError("it was cancelled")

    async def recovering(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        asked.append(question.failure.code)
        return await ask_next()

    asked: list[str] = []
    host.mounted.waterfalls.request_error.register("acme-slow", broken)
    host.mounted.waterfalls.request_error.register("acme-next", recovering)
    agent = host.agent(host.route(fails("INVALID_REQUEST")))

    result = run(agent.ask(["look", png(1)]))

    assert (result.kind, asked) == ("error", ["INVALID_REQUEST"])


def test_a_plugin_that_answers_nothing_of_use_is_named_and_passed_over(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    async def forgetful(question: object, ask_next: Callable[[], Awaitable[object]]) -> None:
        await ask_next()

    forgotten: Any = forgetful
    host.mounted.waterfalls.pre_step.register("acme-forgets", forgotten)
    agent = host.agent(host.route(says("fine")))

    result = run(agent.ask("hi"))

    assert (result.kind, result.text) == ("completed", "fine")
    assert "plugin 'acme-forgets' failed in a waterfall" in caplog.text
    assert "it answered None, which is no PreStepAnswer" in caplog.text


def test_the_plugins_after_one_that_fails_late_are_asked_once(host: Host) -> None:
    async def broken(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        await ask_next()
        raise ValueError("after the others were asked")

    async def counting(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        asked.append(question.failure.code)
        return await ask_next()

    asked: list[str] = []
    host.mounted.waterfalls.request_error.register("acme-late", broken)
    host.mounted.waterfalls.request_error.register("acme-next", counting)
    agent = host.agent(host.route(fails("INVALID_REQUEST")))

    result = run(agent.ask("hi"))

    assert (result.kind, asked) == ("error", ["INVALID_REQUEST"])


ENDS = [SystemExit(3), KeyboardInterrupt()]


@pytest.mark.parametrize("chain", ["pre_step", "request_error"])
@pytest.mark.parametrize("raised", ENDS, ids=repr)
def test_a_plugin_that_ends_the_program_leaves_no_turn_open(
    host: Host, chain: str, raised: BaseException
) -> None:
    async def leaving(question: object, ask_next: object) -> None:
        raise raised

    waterfalls: Any = host.mounted.waterfalls
    leave = getattr(waterfalls, chain).register("acme-exits", leaving)
    agent = host.agent(host.route(fails("INVALID_REQUEST"), says("fine"), says("fine")))

    with pytest.raises(type(raised)) as caught:
        run(agent.ask("hi"))
    leave()

    assert caught.value is raised
    assert host.types(agent.session_id)[-2:] == ["step/end", "turn/end"]
    (end,) = host.data(agent.session_id, "turn/end")
    assert end["reason"] == {"kind": "interrupted"}
    assert run(host.agent(host.route(says("fine")), agent.session_id).ask("and?")).text == "fine"


def test_a_plugin_that_ends_the_program_does_so_also_when_the_turn_cannot_be_closed(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    async def leaving(question: PreStepQuestion, ask_next: object) -> PreStepAnswer:
        raise SystemExit(3)

    host.mounted.waterfalls.pre_step.register("acme-exits", leaving)
    # The opening is stored before, and the input with it.
    agent = host.agent(host.route(says("fine")), sessions=failing(host.sessions, 2))

    with pytest.raises(SystemExit):
        run(agent.ask("hi"))

    assert host.data(agent.session_id, "turn/end") == []
    assert "turn 1 of session" in caplog.text
    assert "stays open" in caplog.text


def test_the_model_is_told_when_a_tool_would_not_stop(host: Host) -> None:
    async def stubborn() -> None:
        while not released.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    released = threading.Event()
    route = host.route(calls(("c", "stubborn", {})), says("noted"))
    agent = host.agent(route, tools=[tool(timeout_s=0.05)(stubborn)], limits=Limits(grace_s=0.05))

    async def talk() -> None:
        await agent.ask("go")
        released.set()

    run(talk())

    assert "It may still be running; check before calling it again." in shown(route)[-1]


def test_an_async_tool_that_stopped_is_said_to_be_stopped(host: Host) -> None:
    async def slow() -> None:
        await asyncio.sleep(PATIENCE_S)

    route = host.route(calls(("c", "slow", {})), says("noted"))
    agent = host.agent(route, tools=[tool(timeout_s=0.05)(slow)])

    run(agent.ask("go"))

    assert shown(route)[-1].endswith("within 0.05 seconds and was stopped.")


def test_a_sync_tool_that_gives_a_coroutine_cannot_end_the_process(host: Host) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    def leaving() -> object:
        return leave()

    route = host.route(calls(("c", "leaving", {})), says("noted"))

    result = run(host.agent(route, tools=[leaving]).ask("go"))

    assert result.text == "noted"
    assert "tried to end the process (3)" in shown(route)[-1]
