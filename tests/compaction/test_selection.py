"""Where a conversation is cut: R286, and D1, D4, D5 of the field reports."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.projections.compaction.engine import NothingToDo
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.pairing import cuts, whole_pairs, without_tools
from everfold.projections.compaction.selection import PricedNode, PricedSurface, Span, select
from everfold.session.ports import SessionStore
from tests.compaction.kit import (
    TOOLS,
    StrictRoute,
    call,
    compact,
    compacted,
    compactor,
    pairing_faults,
    prompted,
    run,
    turn,
)
from tests.domain.kit import assistant, log, system, text, tool_result, user, wishes_of
from tests.projections.kit import hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]

calls_in_steps = st.lists(st.integers(0, 3), min_size=1, max_size=8)


def steps(counts: Sequence[int]) -> list[Any]:
    """Return messages: for each count a user, an assistant with so many calls, and the results."""
    messages: list[Any] = []
    for step, count in enumerate(counts):
        ids = [f"c{step}-{at}" for at in range(count)]
        messages.append(user(f"u{step}", text("q")))
        messages.append(assistant(f"a{step}", text("t"), *map(call, ids))["message"])
        messages += [tool_result(id_, text("r"))["message"] for id_ in reversed(ids)]
    return messages


@given(calls_in_steps, st.data())
def test_d1_every_clean_cut_leaves_valid_pairs_on_both_sides(
    counts: list[int], data: st.DataObject
) -> None:
    messages = steps(counts)
    clean = cuts(messages)

    places = [place for place, is_clean in enumerate(clean) if is_clean]
    start = data.draw(st.sampled_from(places))
    end = data.draw(st.sampled_from([place for place in places if place >= start]))

    rest = [*messages[:start], user("summary", text("s")), *messages[end:]]
    assert pairing_faults(messages[start:end], TOOLS) == []
    assert pairing_faults(rest, TOOLS) == []


@given(calls_in_steps)
def test_d1_every_cut_that_is_not_clean_divides_a_pair(counts: list[int]) -> None:
    messages = steps(counts)

    for place, is_clean in enumerate(cuts(messages)):
        faults = pairing_faults(messages[:place], TOOLS)
        assert is_clean == (faults == [])


@given(calls_in_steps, st.data())
def test_d1_halves_are_text_in_a_request_cut_anywhere(
    counts: list[int], data: st.DataObject
) -> None:
    messages = steps(counts)
    start = data.draw(st.integers(0, len(messages)))
    end = data.draw(st.integers(start, len(messages)))

    part = messages[start:end]

    assert pairing_faults(whole_pairs(part), TOOLS) == []
    assert pairing_faults(without_tools(part), None) == []
    assert [m["id"] for m in without_tools(part)] == [m["id"] for m in part]


@given(calls_in_steps, st.integers(0, 200), st.booleans())
def test_d1_what_is_selected_begins_and_ends_at_clean_cuts(
    counts: list[int], keep_tokens: int, keeps_turn: bool
) -> None:
    messages = [system("s", text("be brief"))["message"], *steps(counts)]
    kinds = {"system": "system/message", "assistant": "assistant/message", "user": "user/message"}
    nodes = tuple(
        PricedNode(seq, kinds[message["role"]], message, 10, 10)
        for seq, message in enumerate(messages)
    )
    surface = PricedSurface(nodes, tuple(cuts(messages)))

    span = select(surface, keep_tokens, 0, keeps_turn=keeps_turn)

    if isinstance(span, Span):
        assert 1 <= span.start < span.end < len(nodes)
        assert surface.clean[span.start]
        assert surface.clean[span.end]
        rest = [*messages[: span.start], *messages[span.end :]]
        assert pairing_faults(messages[span.start : span.end], TOOLS) == []
        assert pairing_faults(rest, TOOLS) == []


@pytest.mark.parametrize("keep_tokens", range(0, 1600, 100))
def test_d1_live_for_every_cut_request_and_history_are_valid(
    store: SessionStore, a_route: RouteMaker, keep_tokens: int
) -> None:
    """A long turn of parallel calls; the tail that is kept grows from test to test."""
    exchanges = [row for n in range(6) for row in turn(n, size=80, tools=n % 3 + 1)]
    opened = [row for row in exchanges if row[0] not in ("turn/start", "turn/end")]
    access = hosted(store, log(*prompted(tools=True), ("turn/start", {"turn": 1}), *opened))
    engine = compactor(a_route(), keep_tokens=keep_tokens, min_span_tokens=0)

    run(engine.compact(access, CompactionWish(trigger="pressure")))

    assert pairing_faults([message for _, message in shown(access)], TOOLS) == []


def test_r286_the_leading_system_message_is_never_inside(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, log(*prompted(), *turn(1), *turn(2)))

    outcome = compacted(access, a_route())

    assert 0 not in outcome.hidden


def test_r286_without_a_leading_system_message_the_first_message_may_be_inside(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, log(prompted()[1], *turn(1), *turn(2)))

    assert compacted(access, a_route()).hidden == (2, 3)


def test_a_later_system_prompt_in_force_stays(store: SessionStore, a_route: RouteMaker) -> None:
    later = ("system/message", system("t", text("be long")))
    access = hosted(store, log(*prompted(), *turn(1), later, *turn(2), *turn(3), *turn(4)))

    outcome = compacted(access, a_route())

    texts = [message["content"][0]["text"] for _, message in shown(access)]
    assert "be long" in texts
    assert outcome.hidden == (8, 9, 12, 13)


def test_d4_a_call_without_its_answer_is_kept_with_all_after_it(
    store: SessionStore, a_route: RouteMaker
) -> None:
    opened = [
        ("turn/start", {"turn": 3}),
        ("user/message", user("u-3", text("go on"))),
        ("assistant/message", assistant("a-3", call("c-3"))),
    ]
    access = hosted(store, log(*prompted(tools=True), *turn(1, tools=1), *turn(2), *opened))

    compacted(access, a_route())
    access.append(wishes_of(log(("tool/result", tool_result("c-3", text("done"))))))

    assert pairing_faults([message for _, message in shown(access)], TOOLS) == []


def test_d4_only_an_open_call_and_nothing_else_is_nothing_to_do(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = [
        ("turn/start", {"turn": 1}),
        ("assistant/message", assistant("a", text("x" * 2000), call("c"))),
        ("tool/result", tool_result("d", text("y" * 2000))),
    ]
    access = hosted(store, log(*prompted(tools=True), *rows))
    route = a_route()

    outcome = compact(access, route)

    assert isinstance(outcome, NothingToDo)
    assert route.requests == []


def test_d5_rejections_errors_and_an_answer_without_a_call_are_summarised(
    store: SessionStore, a_route: RouteMaker
) -> None:
    failed = tool_result("c-2", text("denied " * 50), error={"name": "Rejected", "code": "NO"})
    failed["message"]["content"][0]["isError"] = True
    rows = [
        ("user/message", user("u", text("q" * 400))),
        ("assistant/message", assistant("a", call("c-2"))),
        ("tool/result", failed),
        ("tool/result", tool_result("c-9", text("nobody asked " * 20))),
    ]
    access = hosted(store, log(*prompted(tools=True), *rows, *turn(2)))
    route = a_route()

    outcome = compacted(access, route)

    assert outcome.hidden == (2, 3, 4, 5)
    orphan = route.requests[0].messages[4]["content"]
    assert orphan[0] == text("[Result of tool call c-9:]")


def test_d5_a_single_pair_that_spans_nearly_all_is_an_explicit_no_op(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = [
        ("user/message", user("u", text("q"))),
        ("assistant/message", assistant("a", call("c"))),
        ("tool/result", tool_result("c", text("x" * 200_000))),
    ]
    access = hosted(store, log(*prompted(tools=True), *rows))
    route = a_route()

    outcome = compact(access, route)

    assert isinstance(outcome, NothingToDo)
    assert "less than the 200 worth it" in outcome.reason
    assert (route.requests, types_after(access, 4)) == ([], [])


def test_d5_an_empty_session_is_an_explicit_no_op(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, log(*prompted()))

    outcome = compact(access, a_route())

    assert isinstance(outcome, NothingToDo)
    assert "nothing before the newest messages" in outcome.reason


def test_a_long_last_turn_is_cut_inside_between_exchanges(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """A turn of 60 steps and over 100,000 tokens does not have to be kept whole."""
    rows = [("user/message", user("u", text("do it all")))]
    for number in range(60):
        rows.append(("assistant/message", assistant(f"a{number}", call(f"c{number}"))))
        rows.append(("tool/result", tool_result(f"c{number}", text("x" * 8000))))
    access = hosted(store, log(*prompted(tools=True), *rows))

    outcome = compacted(access, a_route())

    assert outcome.tokens_before > 90_000
    kept = [message for _, message in shown(access)]
    assert 10_000 < sum(len(str(message)) for message in kept) // 4 < 25_000
    assert pairing_faults(kept, TOOLS) == []
