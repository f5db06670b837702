"""Turns and steps: the order of events, what waits, and what ends a turn."""

import pkgutil
import re

import pytest

from everfold.agent.settings import Limits
from everfold.llm.chunks import TextDelta
from everfold.llm.failure import FailureCode
from everfold.routes.failures import UNKNOWN_MODEL
from everfold.routes.scripted import Reply, calls, fails, says
from everfold.session.errors import EventIdReusedError, SessionNotFoundError
from tests.agent.kit import Host, Watching, png, run, shown


def noop() -> str:
    """Do nothing."""
    return "done"


def test_a_first_turn_writes_its_events_in_the_recorded_order(host: Host) -> None:
    agent = host.agent(host.route(says("hello")))

    result = run(agent.ask("hi"))

    assert (result.kind, result.text, result.turn) == ("completed", "hello", 1)
    assert host.types(agent.session_id) == [
        "turn/start",
        "step/start",
        "system/message",
        "user/message",
        "request/header",
        "request/context",
        "assistant/message",
        "step/end",
        "turn/end",
    ]


def test_a_second_turn_writes_no_header_when_nothing_changed(host: Host) -> None:
    agent = host.agent(host.route(says("one"), says("two")))
    run(agent.ask("first"))
    known = len(host.log(agent.session_id))

    run(agent.ask("second"))

    assert host.types(agent.session_id, known) == [
        "turn/start",
        "step/start",
        "user/message",
        "assistant/message",
        "step/end",
        "turn/end",
    ]


def test_tool_results_are_answered_in_a_second_step(host: Host) -> None:
    route = host.route(calls(("c1", "noop", {}), ("c2", "noop", {})), says("fine"))
    agent = host.agent(route, tools=[noop])

    result = run(agent.ask("go"))

    assert result.text == "fine"
    assert host.types(agent.session_id, 6) == [
        "assistant/message",
        "tool/call",
        "tool/call",
        "tool/result",
        "tool/result",
        "step/end",
        "step/start",
        "assistant/message",
        "step/end",
        "turn/end",
    ]
    assert shown(route)[2:] == [
        "assistant: call c1 noop",
        "assistant: call c2 noop",
        "user: result c1: done",
        "user: result c2: done",
    ]


def test_a_tool_result_cites_its_call(host: Host) -> None:
    agent = host.agent(host.route(calls(("c1", "noop", {})), says("fine")), tools=[noop])

    run(agent.ask("go"))

    call, result = (
        next(event for event in host.log(agent.session_id) if event.type == type_)
        for type_ in ("tool/call", "tool/result")
    )
    assert result.source_event_seqs == [call.seq]


def test_the_stored_stream_and_usage_are_those_that_arrived(host: Host) -> None:
    agent = host.agent(host.route(says("hello")))

    run(agent.ask("hi"))

    stored = host.data(agent.session_id, "assistant/message")[0]
    assert [record["type"] for record in stored["stream"]] == [
        "chunk",
        "text-chunks",
        "chunk",
        "chunk",
        "chunk",
    ]
    assert stored["stream"][1]["texts"] == ["hel", "lo"]
    assert stored["usage"] == {"inputTokens": 10, "outputTokens": 2}


def test_input_for_the_next_step_joins_the_running_turn(host: Host) -> None:
    route = host.route(calls(("c1", "steer", {})), says("ok"))

    async def steer() -> str:
        await agent.queue("stop that", target="next-step")
        return "steered"

    agent = host.agent(route, tools=[steer])

    run(agent.ask("go"))

    assert shown(route)[-2:] == ["user: result c1: steered", "user: stop that"]
    assert host.types(agent.session_id, 8)[:6] == [
        "agent/inbox/spliced",
        "tool/result",
        "step/end",
        "agent/inbox/spliced",
        "step/start",
        "user/message",
    ]


def test_input_that_comes_with_the_last_answer_opens_one_more_step(host: Host) -> None:
    route = host.route(says("done"), says("also done"))
    agent = host.agent(route)

    async def talk() -> None:
        await agent.queue("and this", target="next-step")
        await agent.queue("last", target="next-step")
        await agent.ask("do it")

    run(talk())

    assert [line for line in shown(route) if line.startswith("user")] == [
        "user: do it",
        "user: and this",
        "user: last",
    ]
    assert len(host.data(agent.session_id, "turn/end")) == 1


def test_an_input_is_stored_in_the_commit_that_opens_its_turn(host: Host) -> None:
    agent = host.agent(host.route(says("one")))
    commits: list[list[str]] = []
    host.sessions.publications.append(
        lambda _session, events: commits.append([event.type for event in events])
    )

    run(agent.ask("first"))

    assert commits[0] == [
        "turn/start",
        "step/start",
        "system/message",
        "user/message",
    ]


def test_an_input_with_a_key_is_queued_first_so_that_it_can_wait(host: Host) -> None:
    agent = host.agent(host.route(says("one")))

    run(agent.ask("first", key="k"))

    assert host.types(agent.session_id)[:3] == [
        "agent/inbox/spliced",
        "turn/start",
        "agent/inbox/spliced",
    ]


def test_queued_inputs_run_as_turns_of_their_own_in_order(host: Host) -> None:
    agent = host.agent(host.route())

    async def talk() -> list[str]:
        await agent.queue("one")
        await agent.queue("two")
        return [result.text for result in await agent.run_queued()]

    assert run(talk()) == [
        "You said 'one'; I see 0 image(s).",
        "You said 'two'; I see 0 image(s).",
    ]


def test_an_input_waits_for_those_before_it(host: Host) -> None:
    route = host.route()
    agent = host.agent(route)

    async def talk() -> str:
        await agent.queue("one")
        return (await agent.ask("two")).text

    assert run(talk()) == "You said 'two'; I see 0 image(s)."
    assert len(route.sent) == 2


def test_an_answer_cut_at_the_token_limit_ends_the_turn_so(host: Host) -> None:
    agent = host.agent(host.route(says("half a", finish="max-tokens"), says("go on")))

    result = run(agent.ask("tell"))

    assert (result.kind, result.text) == ("max-tokens", "half a")
    assert run(agent.ask("on")).kind == "completed"


def test_calls_of_an_answer_that_was_cut_are_answered_and_not_run(host: Host) -> None:
    ran = []
    cut = calls(("c1", "touch", {}))
    cut = type(cut)((*cut.chunks[:-1], says("", finish="max-tokens").chunks[-1]))

    def touch() -> None:
        ran.append(1)

    agent = host.agent(host.route(cut), tools=[touch])

    result = run(agent.ask("go"))

    assert (result.kind, ran) == ("max-tokens", [])
    error = host.data(agent.session_id, "tool/result")[0]["error"]
    assert error["code"] == "ABORTED_BEFORE_DISPATCH"


def test_a_turn_that_calls_tools_for_ever_reaches_its_limit(host: Host) -> None:
    route = host.route(otherwise=lambda _: calls(("c", "noop", {})))
    agent = host.agent(route, tools=[noop], limits=Limits(steps=3))

    result = run(agent.ask("go"))

    assert result.failure is not None
    assert (result.failure.code, len(route.sent)) == ("STEP_LIMIT", 3)
    assert run(host.agent(host.route(says("ok")), agent.session_id).ask("stop")).text == "ok"


def test_a_failed_turn_is_closed_and_a_later_one_works_s7(host: Host) -> None:
    agent = host.agent(host.route(fails(FailureCode.AUTH, "no key"), says("ok")))

    result = run(agent.ask("hi"))

    assert result.failure is not None
    assert (result.kind, result.failure.message) == ("error", "no key")
    assert result.advice == "check the key of this route"
    assert run(agent.ask("again")).text == "ok"


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (fails(FailureCode.INVALID_REQUEST), "`everfold.projections.image_offload.decisions.omit`"),
        (fails(FailureCode.CONTEXT_WINDOW_EXCEEDED), "`everfold.host.compacting.compact_now`"),
        (fails(FailureCode.UNSUPPORTED_CONTENT), "`sessions.fork('{id}', boundary=seq)`"),
        (fails(FailureCode.RATE_LIMIT, retry_after_ms=3_600_000), "60 minutes"),
    ],
)
def test_advice_names_functions_that_there_are_and_how_long_to_wait(
    host: Host, failure: Reply, said: str
) -> None:
    agent = host.agent(host.route(failure))

    result = run(agent.ask("hi"))

    assert result.advice is not None
    assert said.format(id=agent.session_id) in result.advice
    for path in re.findall(r"`(everfold[\w.]+)`", result.advice):
        assert callable(pkgutil.resolve_name(path))


def test_advice_on_a_model_that_is_not_there_says_nothing_of_images(host: Host) -> None:
    said = f"the provider answered 404: model 'm' not found; {UNKNOWN_MODEL}"
    agent = host.agent(host.route(fails(FailureCode.INVALID_REQUEST, said)))

    result = run(agent.ask("hi"))

    assert result.advice is not None
    assert ("agent.use" in result.advice, "image" in result.advice) == (True, False)


def test_an_answer_longer_than_the_limit_is_kept_up_to_it(host: Host) -> None:
    deltas = [TextDelta(0, "x" * 10) for _ in range(1000)]
    endless = type(says(""))(tuple(deltas), hangs=True)
    agent = host.agent(host.route(endless), limits=Limits(answer_chars=50))

    result = run(agent.ask("go"))

    assert (result.kind, result.text) == ("max-tokens", "x" * 60)
    assert host.data(agent.session_id, "assistant/message")[0]["interrupted"] is True


def test_watchers_are_told_each_stored_event_once_and_in_order_m3(host: Host) -> None:
    agent = host.agent(host.route(calls(("c", "noop", {})), says("ok")), tools=[noop])
    watching = Watching()
    agent.watch(watching)

    run(agent.ask("hi"))

    assert [event.seq for event in watching.events] == list(range(len(host.log(agent.session_id))))
    assert "".join(c.text for c in watching.chunks if isinstance(c, TextDelta)) == "ok"


def test_a_watcher_that_fails_does_not_disturb_the_turn(host: Host) -> None:
    class Failing(Watching):
        def on_chunk(self, turn: int, step: int, chunk: object) -> None:
            raise RuntimeError("no screen")

    agent = host.agent(host.route(says("ok")))
    agent.watch(Failing())

    assert run(agent.ask("hi")).text == "ok"


def test_asking_twice_with_one_key_runs_one_turn_b10(host: Host) -> None:
    route = host.route()
    agent = host.agent(route)

    first = run(agent.ask("pay", key="order-7"))
    again = run(host.agent(route, agent.session_id).ask("pay", key="order-7"))

    assert again == first
    assert len(route.sent) == 1


def test_a_key_used_for_other_words_is_refused_b10(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask("pay", key="order-7"))

    with pytest.raises(EventIdReusedError):
        run(agent.ask("pay more", key="order-7"))


def test_injected_input_keeps_its_source_m4(host: Host) -> None:
    agent = host.agent(host.route())
    notice = {"kind": "plugin", "plugin": "clock", "form": "notice", "summary": "time"}

    run(agent.ask("it is noon", source=notice))

    assert host.data(agent.session_id, "user/message")[0]["source"] == notice


def test_a_session_that_does_not_exist_is_named(host: Host) -> None:
    with pytest.raises(SessionNotFoundError, match="nowhere"):
        host.agent(host.route(), "nowhere")


def test_a_turn_runs_alike_on_both_databases(any_host: Host) -> None:
    host = any_host
    route = host.route(
        fails("SERVER"),
        fails("IMAGE_OFFLOAD_REQUIRED", offload_images=1),
        calls(("c1", "noop", {})),
        says("fine"),
    )
    agent = host.agent(route, tools=[noop])

    result = run(agent.ask(["look", png(1), png(2)]))

    assert result.text == "fine"
    assert [type_ for type_ in host.types(agent.session_id, 6) if "step" not in type_] == [
        "assistant/attempt",
        "llm/retry",
        "llm/retry-started",
        "assistant/attempt",
        "image/offload",
        "request/header",
        "assistant/message",
        "tool/call",
        "tool/result",
        "assistant/message",
        "turn/end",
    ]
