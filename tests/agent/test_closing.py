"""Closing an agent closes the connections that nobody else in the event loop uses."""

import asyncio
import gc
import warnings
from pathlib import Path
from typing import Any

import pytest

from everfold.agent.agent import Agent
from everfold.agent.errors import AgentClosedError
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import TextDelta
from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute
from everfold.routes.scripted import ScriptedRoute, hangs, says
from everfold.routes.settings import settings_from
from tests.agent.kit import MODEL, Host, run
from tests.providers.answers import Answer
from tests.providers.strict_fake import strict_fake


class Line(ScriptedRoute):
    """A route that counts how often it was hung up."""

    def __init__(self, *script: Any) -> None:
        super().__init__(script)
        self.hang_ups = 0

    async def close(self) -> None:
        self.hang_ups += 1


def test_leaving_an_agents_block_closes_it_and_its_connections(host: Host) -> None:
    route = Line(says("ok"))

    async def talk() -> Agent:
        async with host.agent(route) as agent:
            await agent.ask("hi")
        with pytest.raises(AgentClosedError):
            await agent.ask("more")
        return agent

    run(talk())

    assert route.hang_ups == 1


def test_a_route_that_another_agent_of_the_loop_uses_is_not_hung_up(host: Host) -> None:
    route = Line(*[says("ok")] * 2)

    async def talk() -> list[int]:
        first, second = host.agent(route), host.agent(route)
        await asyncio.gather(first.ask("hi"), second.ask("hi"))
        counts = []
        for agent in (first, second):
            await agent.close()
            counts.append(route.hang_ups)
        return counts

    assert run(talk()) == [0, 1]


def test_an_agent_that_is_gone_keeps_no_route(host: Host) -> None:
    route = Line(*[says("ok")] * 2)

    async def talk() -> None:
        await host.agent(route).ask("hi")
        async with host.agent(route) as agent:
            await agent.ask("hi")
            gc.collect()

    run(talk())

    assert route.hang_ups == 1


def test_agents_of_other_loops_keep_no_connection_of_this_one(host: Host) -> None:
    route = Line(*[says("ok")] * 2)
    elsewhere = host.agent(route)
    run(elsewhere.ask("hi"))

    async def talk() -> None:
        async with host.agent(route) as agent:
            await agent.ask("hi")

    run(talk())

    assert route.hang_ups == 1


def test_a_turn_is_closed_in_the_log_before_the_connections_are(host: Host) -> None:
    logged: list[str] = []

    class Late(Line):
        async def close(self) -> None:
            logged.extend(host.types(agent.session_id)[-1:])

    route = Late(hangs(TextDelta(0, "half")))
    agent = host.agent(route)

    async def talk() -> None:
        asking = asyncio.create_task(agent.ask("hi"))
        while not route.sent:
            await asyncio.sleep(0)
        await agent.close()
        await asking

    run(talk())

    assert logged == ["turn/end"]


def test_a_closed_agent_leaves_no_connection_to_a_server_open(host: Host, tmp_path: Path) -> None:
    versions = RequestVersions(FileAttachments(tmp_path / "attachments"))
    with strict_fake() as fake, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        fake.will(Answer("hello"))
        given = {"provider": MODEL.provider, "base_url": fake.base_url, "api_key": "k-1"}
        settings = settings_from(ChatSettings, given)

        async def talk() -> str:
            async with host.agent(OpenAiChatRoute(settings, versions)) as agent:
                return (await agent.ask("hi")).text

        assert run(talk()) == "hello"
        host.checking.clear()  # nothing else holds the route, whose sockets tell when they go
        gc.collect()

    assert [str(each.message) for each in warned if each.category is ResourceWarning] == []
