"""Calls of one agent are stored in the order in which they were made."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from everfold.agent.agent import Agent
from everfold.agent.errors import InputError
from everfold.agent.line import Line
from everfold.agent.tools import ImageData
from everfold.routes.scripted import hangs, says
from everfold.session.frozen import Json
from tests.agent.kit import Host, admits, run


def spoken(host: Host, agent: Agent) -> list[str]:
    """Return the first texts of the inputs that came into turns, in their order in the log."""
    said = host.data(agent.session_id, "user/message")
    return [message["content"][0]["text"] for message in said]


def queued(host: Host, agent: Agent) -> list[str]:
    """Return the first texts of the inputs that were queued, in their order in the log."""
    splices = host.data(agent.session_id, "agent/inbox/spliced")
    return [item["content"][0]["text"] for data in splices for item in data["inserted"]]


def test_asks_at_once_are_answered_in_the_order_in_which_they_were_made(host: Host) -> None:
    agent = host.agent(host.route(*(says(f"to {number}") for number in range(8))))

    async def talk() -> list[str]:
        results = await asyncio.gather(*(agent.ask(str(number)) for number in range(8)))
        return [result.text for result in results]

    assert run(talk()) == [f"to {number}" for number in range(8)]
    assert spoken(host, agent) == [str(number) for number in range(8)]


def test_asks_and_queueings_at_once_are_stored_in_the_order_in_which_they_were_made(
    host: Host,
) -> None:
    agent = host.agent(host.route(*[says("fine")] * 9))

    async def talk() -> None:
        await asyncio.gather(
            agent.queue("0"),
            agent.ask("1", key="one"),
            agent.ask("2"),
            agent.queue("3"),
            agent.ask("4"),
            agent.queue("5"),
        )
        await agent.run_queued()

    run(talk())

    assert spoken(host, agent) == [str(number) for number in range(6)]


def test_a_stream_keeps_its_place_among_asks(host: Host) -> None:
    agent = host.agent(host.route(*[says("fine")] * 3))

    async def streamed(text: str) -> None:
        async for _ in agent.stream(text):
            pass

    async def talk() -> None:
        await asyncio.gather(agent.ask("0"), streamed("1"), agent.ask("2"))

    run(talk())

    assert spoken(host, agent) == ["0", "1", "2"]


def test_an_input_whose_images_take_long_is_not_overtaken(host: Host) -> None:
    def slowly(images: Sequence[ImageData]) -> list[Json]:
        time.sleep(0.05)
        return admits(images)

    agent = host.agent(host.route(*[says("fine")] * 2), admit=slowly)

    async def talk() -> None:
        await asyncio.gather(agent.ask(["0", ImageData(b"1")]), agent.ask("1"))

    run(talk())

    assert spoken(host, agent) == ["0", "1"]


def test_an_input_for_the_next_step_is_stored_while_others_wait_for_their_turn(
    host: Host,
) -> None:
    route = host.route(hangs(), *[says("fine")] * 3)
    agent = host.agent(route)

    async def talk() -> list[str]:
        asks = [asyncio.create_task(agent.ask(str(number))) for number in range(3)]
        while not route.sent:
            await asyncio.sleep(0)
        await agent.queue("steer", target="next-step")
        stored = queued(host, agent)
        agent.cancel()
        await asyncio.gather(*asks)
        return stored

    assert run(talk()) == ["1", "2", "steer"]


def test_an_input_that_is_refused_holds_up_nobody_behind_it(host: Host) -> None:
    agent = host.agent(host.route(*[says("fine")] * 2))

    async def talk() -> list[object]:
        asks = [agent.ask(text) for text in ("0", "", "2")]
        return list(await asyncio.gather(*asks, return_exceptions=True))

    outcomes = run(talk())

    assert isinstance(outcomes[1], InputError)
    assert spoken(host, agent) == ["0", "2"]


def test_a_stream_that_is_left_in_the_line_holds_up_nobody_behind_it(host: Host) -> None:
    agent = host.agent(host.route(*[says("fine")] * 2))

    async def talk() -> None:
        first = asyncio.create_task(agent.ask("0"))
        await asyncio.sleep(0)
        stream = agent.stream("1")
        begun = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        begun.cancel()
        await asyncio.gather(begun, return_exceptions=True)
        await asyncio.gather(first, agent.ask("2"))

    run(talk())

    assert spoken(host, agent) == ["0", "2"]


def test_who_leaves_a_line_while_waiting_is_passed_over() -> None:
    passed: list[int] = []

    async def through(line: Line, number: int) -> None:
        async with line.join():
            await asyncio.sleep(0)
            passed.append(number)

    async def walk() -> bool:
        line = Line()
        tasks = [asyncio.create_task(through(line, number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return line.is_empty

    assert run(walk())
    assert passed == [1, 3]


@pytest.mark.parametrize("leaves_early", [True, False])
def test_the_next_one_passes_as_soon_as_the_place_before_is_left(leaves_early: bool) -> None:
    async def walk() -> bool:
        line = Line()
        async with line.join() as place:
            behind = line.join()
            if leaves_early:
                place.leave()
            return behind.called.is_set()

    assert run(walk()) is leaves_early
