"""Recovery from too many images in the loop (group S), ahead of it (V6), and its bounds (A6)."""

import pkgutil
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from everfold.agent.settings import Limits
from everfold.llm.budgets import ImageBudget
from everfold.llm.chunks import BlockEnd, TextDelta
from everfold.llm.failure import FailureCode
from everfold.llm.retrying import RetryPolicy
from everfold.llm.route import Capabilities
from everfold.plugins.plugin import PluginError
from everfold.plugins.waterfalls import RequestErrorAnswer, RequestErrorQuestion, Retry, Waterfalls
from everfold.projections.image_offload.decisions import omit
from everfold.routes.scripted import Reply, fails, says
from tests.agent.kit import Host, hosting, png, run, shown

TOO_MANY = FailureCode.IMAGE_OFFLOAD_REQUIRED


def takes(
    max_bytes: int | None = None,
    max_images: int | None = None,
    byte_quantum: int = 1,
    count_quantum: int = 1,
) -> Capabilities:
    budget = ImageBudget("raw", max_bytes, max_images, byte_quantum, count_quantum)
    return Capabilities(user_images=True, tool_images=True, budget=budget)


def test_r270_the_order_is_attempt_omission_series_answer(host: Host) -> None:
    agent = host.agent(host.route(fails(TOO_MANY, offload_images=1), says("ok")))

    run(agent.ask(["look", png(1), png(2)]))

    assert host.types(agent.session_id, 4) == [
        "request/header",
        "request/context",
        "assistant/attempt",
        "image/offload",
        "request/header",
        "assistant/message",
        "step/end",
        "turn/end",
    ]
    assert host.data(agent.session_id, "request/header")[-1]["reason"] == "series"


def test_r261_the_attempt_is_stored_before_anybody_is_asked(host: Host) -> None:
    seen: list[str] = []

    async def look(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        seen.extend(host.types(question.session.session_id)[-1:])
        seen.append(f"{question.turn} {question.step} {question.provider} {question.attempt}")
        return await ask_next()

    host.mounted.waterfalls.request_error.register("looker", look)

    run(host.agent(host.route(fails("AUTH"))).ask("hi"))

    assert seen == ["assistant/attempt", "1 1 scripted 1"]


@pytest.mark.parametrize("code", ["AUTH", "CONTEXT_WINDOW_EXCEEDED", "UNKNOWN"])
def test_r262_other_failures_are_passed_on(host: Host, code: str) -> None:
    agent = host.agent(host.route(fails(code, offload_images=1)))

    result = run(agent.ask([png(1)]))

    assert result.kind == "error"
    assert host.data(agent.session_id, "image/offload") == []


def test_r262_a_failure_without_a_count_is_passed_on(host: Host) -> None:
    agent = host.agent(host.route(fails(TOO_MANY)))

    assert run(agent.ask([png(1)])).kind == "error"
    assert host.data(agent.session_id, "image/offload") == []


def test_r263_the_oldest_images_in_surface_order_are_omitted(host: Host) -> None:
    route = host.route(says("a"), fails(TOO_MANY, offload_images=2), says("b"))
    agent = host.agent(route)
    run(agent.ask([png(1)]))

    run(agent.ask([png(2), png(3)]))

    assert [line for line in shown(route) if line.startswith("user")] == [
        "user: [omitted 1]",
        "user: [omitted 2]",
        "user: [image 3]",
    ]


def test_r264_when_nothing_retained_is_left_the_failure_stands(host: Host) -> None:
    agent = host.agent(host.route(fails(TOO_MANY, "none fits", offload_images=1)))

    result = run(agent.ask("no image here"))

    assert result.failure is not None
    assert (result.failure.code, result.failure.message) == (TOO_MANY, "none fits")
    assert result.advice is not None
    assert "decisions.occurrences` lists them" in result.advice


@pytest.mark.parametrize("code", [TOO_MANY, FailureCode.CONTEXT_WINDOW_EXCEEDED])
def test_advice_on_a_failure_that_nobody_was_there_to_recover_says_how_to_mount_plugins(
    host: Host, code: str
) -> None:
    route = host.route(fails(code, "too large", offload_images=1))
    agent = host.agent(route, waterfalls=Waterfalls())

    result = run(agent.ask([png(1)]))

    assert not result.has_recovery
    assert result.advice is not None
    assert result.advice.startswith("no plugin is mounted")
    assert callable(pkgutil.resolve_name(re.findall(r"`(everfold[\w.]+)`", result.advice)[0]))


def test_r265_a_recovery_spends_no_retry_and_logs_none(host: Host) -> None:
    route = host.route(
        fails(TOO_MANY, offload_images=1),
        fails("SERVER"),
        fails(TOO_MANY, offload_images=1),
        fails("SERVER"),
        says("ok"),
    )
    agent = host.agent(route, retry=RetryPolicy(max_retries=2, base_ms=1))

    assert run(agent.ask([png(1), png(2)])).text == "ok"
    assert [data["retry"] for data in host.data(agent.session_id, "llm/retry")] == [1, 2]


def test_r266_the_next_attempt_sees_the_omission(host: Host) -> None:
    route = host.route(fails(TOO_MANY, offload_images=1), says("ok"))

    run(host.agent(route).ask([png(1), png(2)]))

    assert shown(route, 0)[1:] == ["user: [image 1]", "user: [image 2]"]
    assert shown(route, 1)[1:] == ["user: [omitted 1]", "user: [image 2]"]


def test_r267_each_failure_omits_more_until_none_is_left(host: Host) -> None:
    route = host.route(otherwise=fails(TOO_MANY, offload_images=2))
    agent = host.agent(route)

    result = run(agent.ask([png(number) for number in range(5)]))

    assert (result.kind, len(route.sent)) == ("error", 4)
    targets = [data["targets"][0] for data in host.data(agent.session_id, "image/offload")]
    assert [target["imageIndexes"] for target in targets] == [[0, 1], [2, 3], [4]]


def test_r268_an_exhausted_recovery_leaves_the_rest_to_the_chain(host: Host) -> None:
    asked = []

    async def shorten(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        asked.append(question.failure.code)
        return await ask_next()

    host.mounted.waterfalls.request_error.register("later", shorten)
    agent = host.agent(host.route(otherwise=fails(TOO_MANY, offload_images=1)))

    run(agent.ask([png(1)]))

    assert asked == [TOO_MANY]


def test_r269_after_the_plugin_is_gone_nothing_recovers(host: Host) -> None:
    agent = host.agent(host.route(fails(TOO_MANY, offload_images=1)))
    host.mounted.leave()

    assert run(agent.ask([png(1)])).kind == "error"
    assert host.data(agent.session_id, "image/offload") == []


def test_r251_a_route_reports_before_it_sends(host: Host) -> None:
    route = host.route(takes=takes(max_images=2))
    agent = host.agent(route)

    run(agent.ask([png(1), png(2), png(3)]))

    assert (len(route.requests), len(route.sent)) == (2, 1)
    attempt = host.data(agent.session_id, "assistant/attempt")[0]
    failure = attempt["stream"][0]["chunk"]["reason"]["failure"]
    assert (failure["code"], failure["offloadImages"]) == (TOO_MANY, 1)


def test_images_that_a_model_made_are_never_omitted_h5(host: Host) -> None:
    made = Reply((BlockEnd(0, png(9)), *says("here").chunks[-1:]))
    route = host.route(made, fails(TOO_MANY, offload_images=1), says("ok"))
    agent = host.agent(route)
    run(agent.ask("draw"))

    run(agent.ask([png(1)]))

    assert "assistant: [image 9]" in shown(route)
    assert "user: [omitted 1]" in shown(route)


def test_the_older_of_two_equal_images_goes_h5(host: Host) -> None:
    route = host.route(says("a"), says("b"), takes=takes(max_images=2))
    agent = host.agent(route)

    for image in (png(7), png(8), png(7)):
        run(agent.ask([image]))

    assert [line for line in shown(route) if line.startswith("user")] == [
        "user: [omitted 7]",
        "user: [image 8]",
        "user: [image 7]",
    ]


def test_a6_a_recovery_that_changed_nothing_is_not_followed_by_the_same_request(
    host: Host,
) -> None:
    async def always(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        return Retry()

    host.mounted.waterfalls.request_error.register("stubborn", always)
    route = host.route(otherwise=fails("INVALID_REQUEST", "image 3 is too large"))

    result = run(host.agent(route).ask([png(1)]))

    assert result.failure is not None
    assert (result.failure.message, len(route.sent)) == ("image 3 is too large", 1)


def test_a_recovery_that_never_helps_is_bounded_s4(host: Host) -> None:
    route = host.route(otherwise=fails(TOO_MANY, offload_images=1))
    agent = host.agent(route, limits=Limits(recoveries=3))

    result = run(agent.ask([png(number) for number in range(20)]))

    assert (result.kind, len(route.sent)) == ("error", 4)


def test_a_plugin_that_fails_in_the_chain_is_passed_over(host: Host) -> None:
    host.mounted.leave()
    waterfalls = host.mounted.waterfalls

    async def broken(question: object, ask_next: object) -> RequestErrorAnswer:
        raise RuntimeError("out of order")

    async def omits(
        question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        omit(question.session, {3: [0]})
        return Retry()

    waterfalls.request_error.register("broken", broken)
    waterfalls.request_error.register("sound", omits)
    agent = host.agent(host.route(fails(TOO_MANY), says("ok")))

    assert run(agent.ask([png(1)])).text == "ok"


def test_v6_the_planner_omits_ahead_so_that_no_attempt_fails(quick_url: str) -> None:
    settings = {"plan_ahead": True}
    with hosting(quick_url, settings=settings) as host:
        route = host.route(takes=takes(max_images=2, count_quantum=2))
        agent = host.agent(route)

        run(agent.ask([png(number) for number in range(3)]))

        assert len(route.requests) == 1
        assert shown(route)[1:] == ["user: [omitted 0]", "user: [omitted 1]", "user: [image 2]"]
        assert host.data(agent.session_id, "assistant/attempt") == []


def test_v6_the_planner_decides_as_the_rejection_would(tmp_path: Path) -> None:
    targets = []
    for name in ("ahead", "after"):
        url = f"sqlite:///{tmp_path / name}?synchronous=off"
        with hosting(url, settings={"plan_ahead": name == "ahead"}) as host:
            route = host.route(takes=takes(max_bytes=10_000, byte_quantum=4_000))
            agent = host.agent(route)
            for number in range(9):
                run(agent.ask([png(number, 2_000 + number)]))
            decisions = host.data(agent.session_id, "image/offload")
            targets.append([len(data["targets"]) for data in decisions])

    assert targets == [[2, 2, 2], [2, 2, 2]]


def test_v7_the_planner_omits_nothing_where_no_omission_can_help(quick_url: str) -> None:
    made = Reply((BlockEnd(0, png(9, 5_000)), TextDelta(1, "x"), *says("here").chunks[-1:]))
    with hosting(quick_url, settings={"plan_ahead": True}) as host:
        agent = host.agent(host.route(made, takes=takes(max_bytes=4_000)))
        run(agent.ask("draw"))
        host.mounted.waterfalls.request_error.register("stop", _stop)

        run(agent.ask([png(1, 10)]))

        before = host.types(agent.session_id)[
            : host.types(agent.session_id).index("assistant/attempt")
        ]
        assert "image/offload" not in before


def test_v7_the_planner_counts_what_no_omission_removes_as_staying(quick_url: str) -> None:
    made = Reply((BlockEnd(0, png(9, 10_000)), TextDelta(1, "x"), *says("here").chunks[-1:]))
    with hosting(quick_url, settings={"plan_ahead": True}) as host:
        route = host.route(made, takes=takes(max_bytes=15_000))
        agent = host.agent(route)
        run(agent.ask("draw"))

        run(agent.ask([png(1, 3_000), png(2, 10_000)]))

        assert len(route.requests) == 2
        assert shown(route)[-2:] == ["user: [omitted 1]", "user: [omitted 2]"]


def test_v7_a_scripted_route_says_when_no_omission_can_help(host: Host) -> None:
    made = Reply((BlockEnd(0, png(9, 5_000)), TextDelta(1, "x"), *says("here").chunks[-1:]))
    agent = host.agent(host.route(made, takes=takes(max_bytes=4_000)))
    run(agent.ask("draw"))

    result = run(agent.ask([png(1, 10)]))

    assert result.failure is not None
    assert result.failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
    assert host.data(agent.session_id, "image/offload") == []


async def _stop(question: object, ask_next: object) -> RequestErrorAnswer:
    return None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"plan": True}, "has no setting 'plan'"),
        ({"plan_ahead": "yes"}, "takes true or false for plan_ahead, not 'yes'"),
    ],
)
def test_wrong_settings_stop_the_start(
    quick_url: str, settings: dict[str, object], message: str
) -> None:
    with (
        pytest.raises(PluginError, match=message),
        hosting(quick_url, settings=settings),
    ):
        pass
