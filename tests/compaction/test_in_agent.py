"""Compaction under a running agent, with all shipped plugins: A2, A5, D6, D13, H4 of the field reports."""

from collections.abc import Callable
from typing import Any

from everfold.agent.results import TurnResult
from everfold.host.compacting import compact_now
from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode
from everfold.llm.images import images
from everfold.llm.route import Capabilities
from everfold.projections.compaction.engine import Compacted
from everfold.projections.compaction.job import CompactionWish
from everfold.routes.scripted import echo, says
from everfold.session.ports import SessionStore
from tests.compaction.kit import StrictRoute, prompted, run, turn
from tests.compaction.mounting import access_to, agent, mounted
from tests.domain.kit import image, log
from tests.projections.kit import hosted, shown

RouteMaker = Callable[..., StrictRoute]
LONG = log(*prompted(), *(row for n in range(40) for row in turn(n + 1, size=3800)))


def summary_or_echo(request: Any) -> Any:
    """Summarise when asked to, else answer the user."""
    asked = request.messages[-1]["source"].get("plugin") == "compact"
    return echo(request) if not asked else _summary(request)


def _summary(request: Any) -> Any:
    return says("they talked about letters")


def test_d13_a_long_history_goes_on_with_a_smaller_model(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    route = a_route(window=32_000, oversize=FailureCode.SERVER)
    route.otherwise = summary_or_echo
    host = mounted(access.sessions, route)

    result = run(agent(host, "s").ask("and now?"))

    assert "You said 'and now?'" in result.text
    assert len(route.requests) <= 4
    assert route.refused == 0


def test_an_overflow_of_an_unknown_window_is_recovered_and_the_turn_answered(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    route = a_route(takes=Capabilities(user_images=True, tool_images=True))
    route.window, route.otherwise = 50_000, summary_or_echo
    host = mounted(access.sessions, route)

    result = run(agent(host, "s").ask("and now?"))

    assert "You said 'and now?'" in result.text
    types = [event.type for event in access.sessions.log("s")]
    attempt = types.index("assistant/attempt")
    recovery = types[attempt + 1 : types.index("assistant/message", attempt)]
    assert [each for each in recovery if each != "compaction/request"][:4] == [
        "compaction/start",
        "compaction/summary",
        "user/message",
        "compaction/end",
    ]
    (series,) = [e for e in access.sessions.log("s", first=attempt) if e.type == "request/header"]
    assert series.data["reason"] == "series"
    assert "llm/retry" not in types


def test_a2_more_than_100_images_and_both_going_on_and_compacting_work(
    store: SessionStore, a_route: RouteMaker
) -> None:
    turns = [row for n in range(102) for row in turn(n + 1, size=40, images=[image(n)])]
    access = hosted(store, log(*prompted(), *turns))
    takes = Capabilities(user_images=True, budget=ImageBudget(max_images=100))
    route = a_route(takes=takes)
    route.otherwise = summary_or_echo
    host = mounted(access.sessions, route)

    first = run(agent(host, "s").ask("go on"))
    outcome = compact_now(access, {"scripted": route}, CompactionWish(), waterfalls=host.waterfalls)
    second = run(agent(host, "s").ask("thanks"))

    assert "You said 'go on'" in first.text
    assert isinstance(outcome, Compacted)
    assert "You said 'thanks'" in second.text
    assert max(prepared.image_count for prepared in route.sent) <= 100


def test_h4_pictures_in_the_kept_part_still_fit_after_a_compaction(
    store: SessionStore, a_route: RouteMaker
) -> None:
    heavy = [
        {**image(n), "attachment": {**image(n)["attachment"], "bytes": 900_000}} for n in range(8)
    ]
    access = hosted(store, log(*prompted(), *turn(1), *turn(2), *turn(3, images=heavy)))
    takes = Capabilities(user_images=True, budget=ImageBudget("base64", max_bytes=6 * 1024 * 1024))
    route = a_route(takes=takes)
    route.otherwise = summary_or_echo
    host = mounted(access.sessions, route)

    outcome = compact_now(access, {"scripted": route}, CompactionWish(), waterfalls=host.waterfalls)
    result = run(agent(host, "s").ask("thanks"))

    assert isinstance(outcome, Compacted)
    assert "You said 'thanks'; I see 5 image(s)." in result.text
    kept = [block for _, body in shown(access_to(host, "s")) for block in images(body["content"])]
    assert [block.get("offloaded") for block in kept] == [True] * 3 + [None] * 5


def test_d6_the_assistant_still_answers_when_no_compaction_can_help(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, [])
    route = a_route(takes=Capabilities(context_window=30_000))
    route.otherwise = summary_or_echo
    host = mounted(access.sessions, route)
    talking = agent(host, "s", prompt="p" * 112_000)

    async def three() -> list[TurnResult]:
        return [await talking.ask(f"question {number}") for number in range(3)]

    results = run(three())

    assert [f"question {n}" in result.text for n, result in enumerate(results)] == [True] * 3
    assert len(route.sent) == 3
    skips = [event for event in access.sessions.log("s") if event.type == "compaction/skipped"]
    assert 1 <= len(skips) <= 3
