"""The blocking twin, and the replay of recorded answers."""

import threading

import pytest

from everfold.agent.sync import SyncAgent
from everfold.llm.chunks import TextDelta
from everfold.llm.failure import FailureCode
from everfold.llm.route import LlmRequest
from everfold.routes.replay import Exchange, ReplayRoute, exchanges_of
from everfold.routes.scripted import calls, fails, hangs, says
from everfold.session.errors import SessionNotFoundError
from tests.agent.kit import Host, png, run


def test_the_blocking_agent_gives_the_same_results(host: Host) -> None:
    with SyncAgent(host.agent(host.route(says("hello")))) as agent:
        agent.queue("first")

        results = agent.run_queued()

    assert [result.text for result in results] == ["hello"]


def test_the_blocking_agent_raises_what_the_agent_raises(host: Host) -> None:
    with (
        SyncAgent(host.agent(host.route(), "nowhere")) as agent,
        pytest.raises(SessionNotFoundError),
    ):
        agent.ask("hi")


def test_a_blocked_ask_is_cancelled_from_another_thread(host: Host) -> None:
    begun = threading.Event()

    class Begun:
        def on_chunk(self, turn: int, step: int, chunk: object) -> None:
            begun.set()

        def on_events(self, events: object) -> None:
            return

    inner = host.agent(host.route(hangs(TextDelta(0, "half"))))
    inner.watch(Begun())
    with SyncAgent(inner) as agent:
        stopper = threading.Thread(target=stop_when, args=(begun, agent))
        stopper.start()

        result = agent.ask("think")
        stopper.join()

    assert (result.kind, result.text) == ("aborted", "half")


def stop_when(begun: threading.Event, agent: SyncAgent) -> None:
    begun.wait(30)
    agent.cancel()


def test_closing_twice_does_nothing(host: Host) -> None:
    agent = SyncAgent(host.agent(host.route()))
    agent.close()

    agent.close()

    assert host.log(agent.agent.session_id) == []


def record(host: Host) -> str:
    """Return a session with a failure, an omission, a tool call and an answer."""

    def noop() -> str:
        return "done"

    route = host.route(
        fails("SERVER"),
        fails(FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=1),
        calls(("c", "noop", {})),
        says("fine"),
    )
    agent = host.agent(route, tools=[noop])
    run(agent.ask(["go", png(1), png(2)]))
    return agent.session_id


def test_a_replay_writes_the_same_events_r353(host: Host) -> None:
    def noop() -> str:
        return "done"

    recorded = record(host)
    route = ReplayRoute(exchanges_of(host.log(recorded)), provider="scripted")
    agent = host.agent(route, tools=[noop])

    run(agent.ask(["go", png(1), png(2)]))

    assert host.types(agent.session_id) == host.types(recorded)
    for type_ in ("image/offload", "request/header", "turn/end", "tool/call"):
        assert host.data(agent.session_id, type_) == host.data(recorded, type_)


def test_a_replay_that_is_over_says_so(host: Host) -> None:
    agent = host.agent(ReplayRoute((), provider="scripted"))

    result = run(agent.ask("hi"))

    assert result.failure is not None
    assert result.failure.message == "the recording holds 0 request(s), this is 1"


def test_a_replay_of_another_request_names_the_place(host: Host) -> None:
    recorded = record(host)
    exchange = exchanges_of(host.log(recorded))[-1]
    other = ReplayRoute((), provider="scripted")
    body = run(
        other.prepare(LlmRequest({"config": {"provider": "scripted", "model": "m"}}, ()))
    ).body
    agent = host.agent(ReplayRoute((Exchange(exchange.stream, body),), provider="scripted"))

    result = run(agent.ask("hi"))

    assert result.failure is not None
    assert result.failure.message == "request 1 differs from the recorded one at body.config.model"
