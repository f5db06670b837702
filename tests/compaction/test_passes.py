"""Summaries in bounded passes: D7 and D13 of the field reports."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.failure import FailureCode
from everfold.llm.route import Capabilities
from everfold.projections.compaction.engine import Compacted
from everfold.projections.compaction.errors import CompactionSummaryError
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.requests import SummaryInput, Unit, passes, shortened
from everfold.projections.token_meter.prices import message_price
from everfold.routes.scripted import says
from everfold.session.ports import SessionStore
from tests.compaction.kit import (
    HEADER,
    TOOLS,
    StrictRoute,
    call,
    compact,
    compactor,
    pairing_faults,
    pricey,
    prompted,
    run,
    turn,
)
from tests.domain.kit import assistant, image, log, system, text, tool_result, user
from tests.projections.kit import hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
LONG = log(*prompted(tools=True), *(row for n in range(40) for row in turn(n + 1, size=3800)))
"""About 80,000 tokens."""


def done(outcome: Any) -> Compacted:
    """Return an outcome that is a summary."""
    assert isinstance(outcome, Compacted), outcome
    return outcome


def test_d13_80k_tokens_are_summarised_by_a_model_of_32k_in_three_calls(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    assert sum(message_price(m) for _, m in shown(access)) > 75_000
    route = a_route(window=32_000, oversize=FailureCode.SERVER)

    outcome = done(run(compactor(route).compact(access, CompactionWish(trigger="pressure"))))

    assert outcome.passes == len(route.sent) == 3
    assert route.refused == 0
    assert sum(message_price(m) for _, m in shown(access)) < 10_000


@pytest.mark.parametrize("takes_it", [False, True])
def test_pictures_that_a_model_made_are_named_for_a_summariser_that_takes_none(
    store: SessionStore, a_route: RouteMaker, takes_it: bool
) -> None:
    picture = {"type": "image", "attachment": {**image(7)["attachment"], "name": "boat.png"}}
    drawn = [("assistant/message", assistant("drawn", text("here"), picture))]
    access = hosted(store, log(*prompted(), *turn(1, size=4000), *drawn, *turn(2), *turn(3)))
    route = a_route(takes=Capabilities(user_images=True, assistant_images=takes_it))

    done(run(compactor(route, keep_tokens=0).compact(access, CompactionWish())))

    sent = next(m for m in route.requests[0].messages if m["id"] == "drawn")
    second = picture if takes_it else text("[image boat.png]")
    assert list(sent["content"]) == [text("here"), second]


def test_d13_each_pass_carries_the_summary_of_those_before(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    route = a_route(says("one"), says("two"), says("three"), window=32_000)

    outcome = done(compact(access, route))

    first, second, third = route.requests
    assert [r.messages[0]["role"] for r in route.requests] == ["system"] * 3
    assert first.messages[1]["content"][0]["text"].startswith("q1 ")
    assert second.messages[1]["content"][1] == text("one")
    assert third.messages[1]["content"][1] == text("two")
    assert dict(shown(access))[outcome.seq]["content"][1] == text("three")
    assert outcome.usage is not None
    assert outcome.usage.input_tokens == 30


def test_d13_every_message_is_given_once(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, LONG)
    route = a_route(window=32_000)
    messages = [body["id"] for _, body in shown(access)]

    outcome = done(compact(access, route))

    given = [m["id"] for r in route.requests for m in r.messages if m["id"] in messages]
    assert [id_ for id_ in given if id_ != "s"] == messages[1 : len(outcome.hidden) + 1]


def test_d7_an_overflow_of_the_summary_request_itself_is_met_by_shorter_ones(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """The route does not say how much it takes."""
    access = hosted(store, LONG)
    route = a_route(takes=StrictRoute().takes)
    route.window = 30_000

    outcome = done(compact(access, route))

    assert route.refused == 2
    assert outcome.passes == 5


def test_a_model_that_takes_nothing_ends_with_a_reason(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    route = a_route(takes=StrictRoute().takes)
    route.window = 0

    with pytest.raises(CompactionSummaryError, match="larger context window"):
        compact(access, route)

    assert len(route.requests) < 20


def test_a_summary_that_takes_too_many_passes_is_given_up(
    store: SessionStore, a_route: RouteMaker
) -> None:
    engine = compactor(a_route(window=8000), max_passes=3)

    with pytest.raises(CompactionSummaryError, match="more than 3 requests"):
        run(engine.compact(hosted(store, LONG), CompactionWish()))


def test_a_result_that_fits_no_pass_is_shortened_in_the_middle(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = [
        ("user/message", user("u", text("read it"))),
        ("assistant/message", assistant("a", call("c"))),
        ("tool/result", tool_result("c", text("b" * 300_000 + "e"), image(1))),
    ]
    access = hosted(store, log(*prompted(tools=True), *rows, *turn(2)))
    route = a_route(window=16_000)

    outcome = done(compact(access, route))

    assert outcome.passes == 2
    (given,) = route.requests[1].messages[2]["content"]
    assert "[Called tool read with" in given["text"]
    assert "[… the middle was left out" in given["text"]
    assert "e\n[image]" in given["text"]


def test_prompt_and_tools_that_fill_the_window_are_left_out(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = log(
        ("system/message", system("s", text("p" * 40_000))),
        *prompted(tools=True)[1:],
        *turn(1, tools=1),
        *turn(2),
    )
    access = hosted(store, rows)
    route = a_route(window=12_000)

    done(compact(access, route))

    (request,) = route.requests
    assert request.messages[0]["role"] == "user"
    assert "tools" not in request.header


def test_the_summary_is_bounded_by_the_window(store: SessionStore, a_route: RouteMaker) -> None:
    route = a_route(window=32_000)

    done(compact(hosted(store, LONG), route))

    assert {request.config["maxTokens"] for request in route.requests} == {2000}


def test_another_model_may_summarise(store: SessionStore) -> None:
    big, small = StrictRoute(provider="scripted"), StrictRoute(otherwise=says("short"))
    access = hosted(store, log(*prompted(reasoningEffort="high"), *turn(1), *turn(2)))
    engine = compactor(big, provider="other", model="tiny")
    routes = {"scripted": big, "other": small}

    outcome = done(
        run(type(engine)(routes.__getitem__, engine.settings).compact(access, CompactionWish()))
    )

    assert big.requests == []
    assert small.requests[0].config == {"provider": "other", "model": "tiny", "maxTokens": 8192}
    (summary,) = access.sessions.log("s", first=outcome.seq - 1, last=outcome.seq - 1)
    assert (summary.data["provider"], summary.data["model"]) == ("other", "tiny")


def test_settings_of_the_own_model_are_kept_but_for_stops(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = prompted(reasoningEffort="high", temperature=0.5, stop=["END"], maxTokens=7)
    route = a_route()

    done(compact(hosted(store, log(*rows, *turn(1), *turn(2))), route))

    kept = {"reasoningEffort": "high", "temperature": 0.5}
    assert route.requests[0].config == {**HEADER["config"], **kept, "maxTokens": 8192}


def test_the_window_in_the_log_stands_in_for_one_that_the_route_does_not_tell(
    store: SessionStore, a_route: RouteMaker
) -> None:
    context = ("request/context", {"provider": "scripted", "model": "m", "contextWindow": 32_000})
    rows = [*prompted(), context, *(row for n in range(40) for row in turn(n + 1, size=3800))]
    route = a_route()

    assert done(compact(hosted(store, log(*rows)), route)).passes == 3


units = st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 2)), min_size=1, max_size=12)


@given(units, st.integers(500, 4000), st.booleans())
def test_every_pass_fits_its_limit_and_has_valid_pairs(
    sizes: list[tuple[int, int]], limit: int, has_tools: bool
) -> None:
    made_of = SummaryInput(
        session_id="s",
        compaction_id="k",
        head=(system("s", text("be brief"))["message"],),
        units=tuple(_unit(at, size, calls) for at, (size, calls) in enumerate(sizes)),
        config={},
        tools=TOOLS if has_tools else (),
        instruction="sum up",
        limit=limit,
    )
    left, count = made_of.units, 0
    carried: tuple[Any, ...] = ()

    while left:
        taken = tuple(passes(made_of, left, carried))
        request = made_of.request(taken, carried)
        assert 1 <= len(taken) <= len(left)
        assert pricey(request) <= limit
        assert pairing_faults(request.messages, request.header.get("tools")) == []
        left, carried, count = left[len(taken) :], (text("so far"),), count + 1

    assert count <= len(sizes)


def _unit(at: int, size: int, calls: int) -> Unit:
    ids = [f"c{at}-{number}" for number in range(calls)]
    body = [assistant(f"a{at}", text("é" * size), *map(call, ids))["message"]]
    body += [tool_result(id_, text("r" * size))["message"] for id_ in ids]
    return Unit(tuple(body), sum(map(message_price, body)))


@given(st.text(st.characters(codec="utf-8"), max_size=3000), st.integers(64, 500))
def test_a_shortened_unit_costs_no_more_than_its_room(words: str, room: int) -> None:
    unit = Unit((user("u", text(words), image(1)),), 10**6)

    assert shortened(unit, room).price <= room


def test_a_failed_later_pass_stores_nothing(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, LONG)
    before = shown(access)

    with pytest.raises(CompactionSummaryError):
        compact(access, a_route(says("one"), says(" "), window=32_000))

    assert shown(access) == before
    assert types_after(access, len(LONG) - 1) == [
        "compaction/start",
        "compaction/request",
        "compaction/request",
        "compaction/end",
    ]
