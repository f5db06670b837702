"""Retries of the unchanged request: budget, pauses, what is logged, and timeouts."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from everfold.agent.retrying import budget_answer
from everfold.agent.settings import Limits
from everfold.llm.chunks import BlockEnd, BlockStart, Chunk, TextDelta
from everfold.llm.failure import FailureCode, LlmFailure
from everfold.llm.retrying import RetryPolicy
from everfold.llm.route import Prepared
from everfold.plugins.waterfalls import Retry
from everfold.routes.scripted import Reply, ScriptedRoute, fails, hangs, says
from tests.agent.kit import Host, run

RETRYABLE = [
    "RATE_LIMIT",
    "TIMEOUT",
    "FIRST_CHUNK_TIMEOUT",
    "SERVER",
    "TRANSPORT",
    "EMPTY_RESPONSE",
    "MALFORMED_RESPONSE",
]
STANDING = [code for code in FailureCode if code not in RETRYABLE]


@pytest.mark.parametrize("code", RETRYABLE)
def test_a_passing_failure_is_retried(host: Host, code: str) -> None:
    agent = host.agent(host.route(fails(code), says("ok")))

    assert run(agent.ask("hi")).text == "ok"


@pytest.mark.parametrize("code", STANDING)
def test_a_standing_failure_is_not_retried(host: Host, code: str) -> None:
    route = host.route(fails(code), says("ok"))

    assert run(host.agent(route).ask("hi")).kind == "error"
    assert len(route.sent) == 1


def test_a_retry_is_logged_before_the_pause_and_after_it(host: Host) -> None:
    agent = host.agent(host.route(fails("EMPTY_RESPONSE", "nothing came"), says("ok")))

    run(agent.ask("hi"))

    assert host.types(agent.session_id, 6)[:4] == [
        "assistant/attempt",
        "llm/retry",
        "llm/retry-started",
        "assistant/message",
    ]
    retry = host.data(agent.session_id, "llm/retry")[0]
    started = host.data(agent.session_id, "llm/retry-started")[0]
    assert started == {name: retry[name] for name in ("retryId", "turn", "step", "retry")}
    assert retry["failure"] == {"message": "nothing came", "code": "EMPTY_RESPONSE"}
    assert (retry["retry"], retry["maxRetries"], retry["provider"]) == (1, 2, "scripted")


def test_the_budget_of_retries_is_kept(host: Host) -> None:
    route = host.route(otherwise=fails("SERVER"))

    result = run(host.agent(route, retry=RetryPolicy(max_retries=2, base_ms=1)).ask("hi"))

    assert (result.kind, len(route.sent)) == ("error", 3)


def test_each_step_has_its_own_budget(host: Host) -> None:
    flaky = [fails("SERVER"), fails("SERVER"), says("ok")]
    agent = host.agent(host.route(*flaky, *flaky))

    assert run(agent.ask("one")).text == "ok"
    assert run(agent.ask("two")).text == "ok"


def policy(retries: int, **failure: int) -> Retry | None:
    failed = LlmFailure("slow down", "RATE_LIMIT", provider_retry_after_ms=failure.get("after"))
    return budget_answer(failed, retries, RetryPolicy(max_retries=9, base_ms=100), lambda: 1.0)


def test_pauses_double() -> None:
    assert [policy(retries) for retries in range(3)] == [
        Retry(spends_budget=True, delay_ms=100),
        Retry(spends_budget=True, delay_ms=200),
        Retry(spends_budget=True, delay_ms=400),
    ]


def test_a_longer_wait_that_the_provider_asks_for_is_honoured() -> None:
    assert policy(0, after=7_000) == Retry(spends_budget=True, delay_ms=7_000)


def test_a_wait_beyond_our_patience_ends_the_turn() -> None:
    assert policy(0, after=600_000) is None


def test_an_empty_answer_is_no_message_a11(host: Host) -> None:
    agent = host.agent(host.route(says(""), says("ok")))

    assert run(agent.ask("hi")).text == "ok"
    assert len(host.data(agent.session_id, "assistant/attempt")) == 1


def test_an_answer_that_breaks_off_is_an_attempt_and_its_pieces_are_kept(host: Host) -> None:
    agent = host.agent(host.route(Reply((TextDelta(0, "hal"),)), says("whole")))

    assert run(agent.ask("hi")).text == "whole"
    stream = host.data(agent.session_id, "assistant/attempt")[0]["stream"]
    assert stream[0]["texts"] == ["hal"]
    assert stream[1]["chunk"]["reason"]["failure"]["code"] == "TRANSPORT"


def test_an_answer_that_never_begins_is_given_up(host: Host) -> None:
    limits = Limits(first_chunk_timeout_s=0.05)
    agent = host.agent(host.route(hangs(), says("ok")), limits=limits)

    assert run(agent.ask("hi")).text == "ok"
    assert host.data(agent.session_id, "llm/retry")[0]["failure"]["code"] == "FIRST_CHUNK_TIMEOUT"


def test_an_answer_that_does_not_go_on_is_given_up(host: Host) -> None:
    limits = Limits(chunk_timeout_s=0.05, first_chunk_timeout_s=0.05)
    agent = host.agent(host.route(hangs(TextDelta(0, "x")), says("ok")), limits=limits)

    assert run(agent.ask("hi")).text == "ok"
    assert host.data(agent.session_id, "llm/retry")[0]["failure"]["code"] == "TIMEOUT"


class Murmuring(ScriptedRoute):
    """A route whose first answer goes on for ever and says nothing more."""

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        if len(self.requests) > 1:
            async for chunk in super().stream(prepared):
                yield chunk
            return
        yield TextDelta(0, "said")
        while True:
            yield BlockStart(1, "text")
            yield TextDelta(1, "")
            yield BlockEnd(1, {"type": "text", "text": ""})
            await asyncio.sleep(0.01)


def test_an_answer_that_goes_on_saying_nothing_is_given_up_and_what_it_said_is_kept(
    host: Host,
) -> None:
    limits = Limits(chunk_timeout_s=0.1)
    agent = host.agent(Murmuring([says("ok"), says("ok")]), limits=limits)

    assert run(agent.ask("hi")).text == "ok"
    assert host.data(agent.session_id, "llm/retry")[0]["failure"]["code"] == "TIMEOUT"
    stream = host.data(agent.session_id, "assistant/attempt")[0]["stream"]
    assert stream[0]["texts"] == ["said"]


class Broken(ScriptedRoute):
    """A route with a defect, whose message holds a secret."""

    async def prepare(self, request: object) -> Prepared:
        raise KeyError("Bearer sk-secret")


def test_a_defect_of_a_route_ends_the_turn_and_tells_no_secret(host: Host) -> None:
    agent = host.agent(Broken())

    result = run(agent.ask("hi"))

    assert result.failure is not None
    assert result.failure.message.startswith("the route raised KeyError at test_retries.py:")
    assert all(b"sk-secret" not in event.state for event in host.log(agent.session_id))


def test_a_cancelled_pause_ends_the_turn(host: Host) -> None:
    route = host.route(fails("RATE_LIMIT", retry_after_ms=60_000))
    agent = host.agent(route)

    async def talk() -> str:
        agent.watch(_Cancelling(agent.cancel, "llm/retry"))
        return (await agent.ask("hi")).kind

    assert run(talk()) == "aborted"
    assert host.data(agent.session_id, "llm/retry-started") == []


class _Cancelling:
    """Cancels as soon as an event of a type is stored."""

    def __init__(self, cancel: object, type_: str) -> None:
        self._cancel, self._type = cancel, type_

    def on_chunk(self, turn: int, step: int, chunk: object) -> None:
        return

    def on_events(self, events: object) -> None:
        assert callable(self._cancel)
        assert isinstance(events, (list, tuple))
        if any(event.type == self._type for event in events):
            self._cancel()
