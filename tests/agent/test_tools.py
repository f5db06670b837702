"""Tools: schemas from signatures, arguments, timeouts, and one answer to each call."""

import asyncio
import threading
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from everfold.agent.errors import AgentError, ToolDefinitionError
from everfold.agent.settings import Limits
from everfold.agent.tools import ImageData, ToolContext, tool
from everfold.routes.scripted import calls, says
from everfold.session.deciding import DecisionMeans
from tests.agent.answers import answered, block, text
from tests.agent.kit import Host, admits, run, shown


class Place(BaseModel):
    """A place."""

    city: str
    lat: float = 0.0


def look(
    where: Place,
    detail: Annotated[Literal["low", "high"], Field(description="how much")] = "low",
    schema: int = 1,
) -> str:
    """Look at a place.

    It tells what is there.
    """
    return f"{where.city} {detail} {schema}"


def test_the_schema_comes_from_the_signature() -> None:
    made = tool(look)

    parameters = made.parameters
    assert (made.name, made.description) == ("look", "Look at a place.\n\nIt tells what is there.")
    assert (parameters["required"], parameters["additionalProperties"]) == (["where"], False)
    assert parameters["properties"]["detail"] == {
        "default": "low",
        "description": "how much",
        "enum": ["low", "high"],
        "type": "string",
    }
    assert parameters["$defs"]["Place"]["required"] == ["city"]


def test_arguments_arrive_as_what_the_signature_says(host: Host) -> None:
    data = answered(host, look, {"where": {"city": "Ulm"}, "schema": 7})

    assert text(data) == "Ulm low 7"
    assert "isError" not in block(data)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"where": ', "not valid JSON"),
        ("[1]", "a JSON list; they must be an object"),
        ("{}", "- where: Field required"),
        ('{"where": {"city": 1}}', "- where.city: Input should be a valid string"),
        ('{"where": {"city": "x"}, "color": 1}', "- color: Extra inputs are not permitted"),
    ],
)
def test_wrong_arguments_are_told_to_the_model(host: Host, arguments: str, said: str) -> None:
    data = answered(host, look, arguments)

    assert said in text(data)
    assert (block(data)["isError"], data["error"]["code"]) == (True, "INVALID_ARGUMENTS")


def test_empty_arguments_mean_none(host: Host) -> None:
    def ping() -> str:
        return "pong"

    assert text(answered(host, ping, "")) == "pong"


def test_an_unknown_tool_is_told_to_the_model(host: Host) -> None:
    agent = host.agent(host.route(calls(("c", "fly", {})), says("ok")), tools=[look])

    run(agent.ask("go"))

    data = host.data(agent.session_id, "tool/result")[0]
    assert text(data) == "There is no tool 'fly'. Tools: look."
    assert data["error"]["code"] == "UNKNOWN_TOOL"


def test_an_exception_is_told_to_the_model(host: Host) -> None:
    def divide() -> float:
        return 1 / 0

    data = answered(host, divide)

    assert text(data) == "ZeroDivisionError: division by zero"
    assert data["error"] == {"name": "ZeroDivisionError", "code": "TOOL_FAILED"}


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), MemoryError()]
)
def test_a_tool_cannot_end_the_process(host: Host, error: BaseException) -> None:
    def leave() -> None:
        raise error

    async def leave_too() -> None:
        raise SystemExit(4)

    assert block(answered(host, leave))["isError"] is True
    assert block(answered(host, leave_too))["isError"] is True


def test_a9_one_bad_image_spoils_only_its_own_call(host: Host) -> None:
    def shoot(number: int) -> ImageData:
        return ImageData(bytes([number]) if number < 6 else b"", f"shot-{number}")

    wanted = [(f"c{number}", "shoot", {"number": number}) for number in range(1, 7)]
    route = host.route(calls(*wanted), says("ok"))
    agent = host.agent(route, tools=[shoot], admit=admits)

    assert run(agent.ask("go")).text == "ok"

    assert sorted(line for line in shown(route) if "result" in line) == [
        *(f"user: result c{number}: [image {number}]" for number in range(1, 6)),
        "user: result c6: ValueError: image 'shot-6' is empty",
    ]


def test_an_agent_without_a_store_for_images_says_so(host: Host) -> None:
    def shoot() -> ImageData:
        return ImageData(b"\x01")

    agent = host.agent(host.route(calls(("c", "shoot", {})), says("ok")), tools=[shoot])

    run(agent.ask("go"))

    assert "has no store for images" in text(host.data(agent.session_id, "tool/result")[0])


def test_tools_of_a_step_run_at_once(host: Host) -> None:
    meeting = threading.Barrier(3, timeout=30)

    def meet() -> str:
        return str(meeting.wait() >= 0)

    wanted: list[tuple[str, str, str]] = [(f"c{number}", "meet", "{}") for number in range(3)]
    agent = host.agent(host.route(calls(*wanted), says("ok")), tools=[meet])

    run(agent.ask("go"))

    assert [text(data) for data in host.data(agent.session_id, "tool/result")] == ["True"] * 3


def test_no_more_tools_run_at_once_than_the_limit(host: Host) -> None:
    running = most = 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    wanted: list[tuple[str, str, str]] = [(f"c{number}", "work", "{}") for number in range(6)]
    agent = host.agent(
        host.route(calls(*wanted), says("ok")), tools=[work], limits=Limits(parallel_tools=2)
    )

    run(agent.ask("go"))

    assert most == 2


def test_results_at_hand_are_stored_in_the_order_of_the_calls(host: Host) -> None:
    async def wait(turns: int) -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        return str(turns)

    wanted = [(f"c{turns}", "wait", {"turns": turns}) for turns in (9, 0, 5)]
    agent = host.agent(host.route(calls(*wanted), says("ok")), tools=[wait])

    run(agent.ask("go"))

    assert [text(data) for data in host.data(agent.session_id, "tool/result")] == ["9", "0", "5"]


def test_a_slow_tool_does_not_keep_the_result_of_a_quick_one_from_the_log(host: Host) -> None:
    seen: list[str] = []

    async def slow() -> str:
        while not (seen_now := host.data(agent.session_id, "tool/result")):
            await asyncio.sleep(0.01)
        seen.extend(text(data) for data in seen_now)
        return "slow"

    async def quick() -> str:
        return "quick"

    route = host.route(calls(("c1", "slow", {}), ("c2", "quick", {})), says("ok"))
    agent = host.agent(route, tools=[slow, quick], limits=Limits(gather_s=0.01))

    run(agent.ask("go"))

    assert seen == ["quick"]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_takes_too_long_is_answered_for(host: Host, is_async: bool) -> None:
    release = threading.Event()

    async def wait_async() -> None:
        await asyncio.Event().wait()

    def wait_sync() -> None:
        release.wait(60)

    data = answered(host, tool(timeout_s=0.05)(wait_async if is_async else wait_sync))
    release.set()

    assert data["error"]["code"] == "TIMEOUT"
    assert ("still be running" in text(data)) is not is_async


def test_a_context_is_filled_in_and_not_asked_of_the_model(host: Host) -> None:
    def who(context: ToolContext, loud: bool = False) -> str:
        return f"{context.turn} {context.step} {context.call_id} {loud}"

    assert "context" not in tool(who).parameters["properties"]
    assert text(answered(host, who, {"loud": True})) == "1 1 c True"


def test_a_long_result_is_shortened_in_the_middle(host: Host) -> None:
    def shout() -> str:
        return "a" * 500 + "z" * 500

    agent = host.agent(
        host.route(calls(("c", "shout", {})), says("ok")),
        tools=[shout],
        limits=Limits(result_chars=100),
    )

    run(agent.ask("go"))

    said = text(host.data(agent.session_id, "tool/result")[0])
    assert said == "a" * 75 + "\n[… 900 characters left out …]\n" + "z" * 25


def test_a_result_that_the_log_refuses_is_replaced_by_saying_so(host: Host) -> None:
    def shout() -> str:
        return "x" * 5_000

    small = type(host.sessions)(
        host.sessions.store,
        host.sessions.composition,
        means=DecisionMeans(host.sessions.means.clock, host.sessions.means.new_id, 4_000),
    )
    route = host.route(calls(("c1", "shout", {}), ("c2", "look", "{}")), says("ok"))
    agent = host.agent(route, tools=[shout, look], sessions=small)

    assert run(agent.ask("go")).text == "ok"

    results = host.data(agent.session_id, "tool/result")
    assert [data["error"]["code"] for data in results] == ["RESULT_REFUSED", "INVALID_ARGUMENTS"]


def test_an_answer_that_the_log_refuses_is_kept_without_its_stream(host: Host) -> None:
    small = type(host.sessions)(
        host.sessions.store,
        host.sessions.composition,
        means=DecisionMeans(host.sessions.means.clock, host.sessions.means.new_id, 4_000),
    )
    agent = host.agent(host.route(says("x" * 3_540), says("y" * 9_000)), sessions=small)

    assert run(agent.ask("go")).text == "x" * 3_540
    too_long = run(agent.ask("go"))

    assert too_long.failure is not None
    assert "too-large" in too_long.failure.code
    assert host.data(agent.session_id, "assistant/message")[0]["stream"] == []


def test_a_name_that_providers_refuse_is_refused_at_once() -> None:
    with pytest.raises(ToolDefinitionError, match="letters, digits"):
        tool(name="has space")(look)


def test_parameters_without_a_name_are_refused_at_once() -> None:
    def many(*paths: str) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"takes \*paths"):
        tool(many)


def test_parameters_without_a_schema_are_refused_at_once() -> None:
    def odd(lock: threading.Event) -> None: ...

    with pytest.raises(ToolDefinitionError, match="has a parameter without a schema"):
        tool(odd)


def test_two_tools_of_one_name_are_refused(host: Host) -> None:
    with pytest.raises(AgentError, match="two tools are called 'look'"):
        host.agent(host.route(), tools=[look, look])
