"""Inputs that wait, and whose caller goes away before a turn took them."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from everfold.agent.agent import Agent
from everfold.agent.errors import AgentClosedError
from everfold.llm.chunks import TextDelta
from everfold.routes.scripted import ScriptedRoute, hangs, says
from everfold.session.events import Recorded
from everfold.session.session import Session
from tests.agent.kit import PATIENCE_S, Host, run, shown


async def busy(agent: Agent, route: ScriptedRoute) -> "asyncio.Task[object]":
    """Return a running turn that never ends by itself."""
    first: asyncio.Task[object] = asyncio.create_task(agent.ask("first"))
    while not route.sent:
        await asyncio.sleep(0)
    return first


class Queued:
    """Knows when a number of inputs were queued."""

    def __init__(self, agent: Agent, count: int) -> None:
        self._left, self._reached = count, asyncio.Event()
        agent.watch(self)

    def on_chunk(self, turn: int, step: int, chunk: object) -> None:
        return

    def on_events(self, events: Sequence[Recorded]) -> None:
        self._left -= sum(bool(event.data.get("inserted")) for event in events)
        if self._left <= 0:
            self._reached.set()

    async def wait(self) -> None:
        await self._reached.wait()


async def second_cancelled(agent: Agent, route: ScriptedRoute, key: str | None) -> None:
    """Cancel an ask while it waits for the turn of another one, then end that turn."""
    queued = Queued(agent, 1)
    first = await busy(agent, route)
    second = asyncio.create_task(agent.ask("second", key=key))
    await queued.wait()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    agent.cancel()
    await first


def test_an_ask_that_is_cancelled_while_it_waits_is_taken_back(host: Host) -> None:
    route = host.route(hangs(TextDelta(0, "half")), says("third"))
    agent = host.agent(route)

    async def talk() -> str:
        await second_cancelled(agent, route, None)
        return (await agent.ask("third")).text

    assert run(talk()) == "third"
    assert "user: second" not in shown(route)


def test_an_ask_with_a_key_that_is_cancelled_while_it_waits_stays_for_the_retry(
    host: Host,
) -> None:
    route = host.route(hangs(TextDelta(0, "half")), says("second"))
    agent = host.agent(route)

    async def talk() -> str:
        await second_cancelled(agent, route, "k-2")
        return (await agent.ask("second", key="k-2")).text

    assert run(talk()) == "second"
    assert host.types(agent.session_id).count("turn/start") == 2


class Storing:
    """A publication that holds the next append back until it is let go."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, session: Session, events: Sequence[Recorded]) -> None:
        self.has_begun.set()
        self.may_end.wait(PATIENCE_S)

    async def cancel(self, asking: "asyncio.Task[object]") -> None:
        """Cancel an ask while its input is being stored."""
        await asyncio.to_thread(self.has_begun.wait, PATIENCE_S)
        asking.cancel()
        await asyncio.sleep(0)
        self.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await asking


def test_an_ask_that_is_cancelled_while_it_is_being_queued_is_taken_back(host: Host) -> None:
    route = host.route(hangs(TextDelta(0, "half")), says("next"))
    agent = host.agent(route)

    async def talk() -> str:
        first = await busy(agent, route)
        storing = Storing()
        host.sessions.publications.append(storing)
        await storing.cancel(asyncio.create_task(agent.ask("gone")))
        agent.cancel()
        await first
        return (await agent.ask("next")).text

    assert run(talk()) == "next"
    assert "user: gone" not in shown(route)


def test_an_ask_that_is_cancelled_while_it_opens_its_turn_asks_no_model(host: Host) -> None:
    route = host.route(says("next"))
    agent = host.agent(route)

    async def talk() -> str:
        storing = Storing()
        host.sessions.publications.append(storing)
        await storing.cancel(asyncio.create_task(agent.ask("gone")))
        return (await agent.ask("next")).text

    assert run(talk()) == "next"
    reasons = [data["reason"]["kind"] for data in host.data(agent.session_id, "turn/end")]
    assert (reasons, len(route.sent)) == (["aborted", "completed"], 1)


def test_closing_an_agent_takes_back_what_waits(host: Host) -> None:
    route = host.route(hangs(TextDelta(0, "half")), says("next"))
    agent = host.agent(route)

    async def talk() -> None:
        queued = Queued(agent, 1)
        first = await busy(agent, route)
        second = asyncio.create_task(agent.ask("second"))
        await queued.wait()
        await agent.close()
        await first
        with pytest.raises(AgentClosedError):
            await second

    run(talk())

    assert run(host.agent(route, agent.session_id).ask("next")).text == "next"
    assert "user: second" not in shown(route)
