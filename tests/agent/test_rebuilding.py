"""Each request that was sent is rebuilt from the log; here: that the check which all tests share bites."""

import ast
from pathlib import Path

import pytest

from everfold.agent.errors import AgentError
from everfold.agent.requests import rebuild_request
from everfold.llm.route import LlmRequest
from everfold.projections.image_offload.decisions import omit
from everfold.routes.scripted import says
from tests.agent.kit import Checking, Host, png, run

MAY_MAKE_AGENTS = {"kit.py", "test_g_storage.py", "test_two_processes.py"}
"""The kit checks every request; the others run agents in processes or stores of their own."""


def test_every_agent_of_these_tests_comes_from_the_kit_that_checks_it() -> None:
    makers = {
        path.name
        for path in Path(__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Agent"
    }

    assert makers == MAY_MAKE_AGENTS


def test_a_request_that_differs_from_the_log_is_found(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask("hi"))
    seq = len(host.log(agent.session_id)) - 1
    sent = rebuild_request(host.sessions, agent.session_id, seq)
    checking = Checking(host.route(), host.reader, [])

    run(checking.prepare(sent))
    run(checking.prepare(LlmRequest(sent.header, sent.messages[:-1], sent.session_id)))

    assert len(checking.differences) == 1


def test_requests_are_rebuilt_at_their_own_time_not_at_the_present(host: Host) -> None:
    route = host.route(says("a"), says("b"))
    agent = host.agent(route)
    run(agent.ask(["look", png(1)]))
    omit(host.access(agent.session_id), {3: [0]})
    run(agent.ask("again"))

    settled = [event for event in host.log(agent.session_id) if event.type == "assistant/message"]
    seqs = [
        int(str(event.envelope()["correlationId"]).removeprefix("request:")) for event in settled
    ]

    rebuilt = [rebuild_request(host.reader, agent.session_id, seq) for seq in seqs]
    assert [request.messages for request in rebuilt] == [
        tuple(request.messages) for request in route.requests
    ]
    assert [request.header for request in rebuilt] == [request.header for request in route.requests]


def test_a_place_before_any_request_says_so(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask("hi"))

    with pytest.raises(AgentError, match="has no request/header up to seq 3"):
        rebuild_request(host.sessions, agent.session_id, 3)


def test_messages_that_nothing_touched_stay_the_same_objects_r128(host: Host) -> None:
    route = host.route()
    agent = host.agent(route)
    run(agent.ask("one"))
    run(agent.ask(["two", png(1)]))
    omit(host.access(agent.session_id), {11: [0]})

    run(agent.ask("three"))

    before, after = route.requests[1].messages, route.requests[2].messages
    assert [old is new for old, new in zip(before, after, strict=False)] == [True] * 3 + [False]
