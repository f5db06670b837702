"""Placement and the surface fold: group D, in the pure fold and in a live session."""

from typing import Any

import pytest

from everfold.session.composition import Composition
from everfold.session.detached import FoldResult, fold_surface
from everfold.session.errors import (
    EventSequenceError,
    ReplaceCoverageError,
    ReplaceRangeError,
    SessionError,
    SourceRefsError,
    SurfaceOpError,
    SystemHeadError,
    ToolRewriteError,
)
from everfold.session.events import Event
from everfold.session.frozen import Json
from everfold.session.vocabulary import MESSAGE_TYPES
from tests.domain.kit import (
    APPEND,
    Record,
    assistant,
    composition,
    log,
    record,
    replace,
    system,
    text,
    tool_result,
    user,
)

U = ("user/message", user())
S = ("system/message", system())
A = ("assistant/message", assistant())
T = ("tool/result", tool_result("c", text("out")))
L: tuple[str, Json] = ("todo/write", {})


def fold(records: list[Record], in_force: Composition | None = None) -> FoldResult:
    """Fold records by the surface rules alone."""
    events = [Event.of(each) for each in records]
    return fold_surface(events, composition() if in_force is None else in_force)


def nodes(*events: Any) -> list[int]:
    """The surface of these events."""
    return list(fold(log(*events)).surface.nodes)


def refused(error: type[SessionError], *events: Any) -> str:
    """The refusal of the last of these events; those before it pass."""
    records = log(*events)
    fold(records[:-1])
    with pytest.raises(error) as caught:
        fold(records)
    assert caught.value.seq == len(records) - 1
    return str(caught.value)


def over(first: Json, last: Json, sources: Json = (0, 1, 2), op: str = "replace") -> Any:
    """Surface fields of any kind."""
    marker = {"op": op, "startSeq": first, "endSeq": last}
    return {"surfaceOp": marker, "sourceEventSeqs": list(sources)}


def test_four_types_make_nodes_r40() -> None:
    assert {"system/message", "user/message", "assistant/message", "tool/result"} == MESSAGE_TYPES
    assert nodes(S, U, A, T, L, ("turn/start", {}), ("x/unknown", {})) == [0, 1, 2, 3]


@pytest.mark.parametrize("event", [S, U, A, T])
def test_a_message_without_a_marker_is_refused_r41(event: Any) -> None:
    assert "needs a surfaceOp" in refused(SurfaceOpError, (*event, {}))


@pytest.mark.parametrize(
    "marker",
    [
        None,
        True,
        0,
        "",
        "Append",
        "replace",
        ["append"],
        {},
        {"op": "append"},
        {"op": "replace", "startSeq": 0},
        {"op": "replace", "startSeq": 0, "endSeq": 0, "x": 1},
        {"op": "append", "startSeq": 0, "endSeq": 0},
        {"op": None, "startSeq": 0, "endSeq": 0},
        {"op": "replace", "start": 0, "end": 0},
        *({"op": "replace", "startSeq": bad, "endSeq": 0} for bad in (-1, 0.5, -0.0, "0", None)),
        *({"op": "replace", "startSeq": 0, "endSeq": bad} for bad in (True, [0], 2**53)),
    ],
)
def test_a_malformed_marker_is_refused_r42_r43_r44(marker: Json) -> None:
    assert "surfaceOp" in refused(
        SurfaceOpError, U, (*U, {"surfaceOp": marker, "sourceEventSeqs": [0]})
    )


@pytest.mark.parametrize("name", ["surfaceOp", "sourceEventSeqs"])
@pytest.mark.parametrize("value", ["append", None, [0]])
@pytest.mark.parametrize("type_", ["turn/start", "x/unknown"])
def test_a_log_only_event_carries_no_surface_fields_r45_r47(
    name: str, value: Json, type_: str
) -> None:
    assert name in refused(SurfaceOpError, (type_, {}, {name: value}))


def test_an_unknown_ignorable_event_is_opaque_r46() -> None:
    opaque: Any = ("x/unknown", {}, {"ignorable": True, "surfaceOp": 5, "sourceEventSeqs": [99]})

    assert nodes(U, opaque, U) == [0, 2]


def test_ignorable_does_not_exempt_a_known_type_r48() -> None:
    refused(SurfaceOpError, ("todo/write", {}, {"ignorable": True, "surfaceOp": "append"}))
    assert nodes(("user/message", user(), {**APPEND, "ignorable": True})) == [0]


@pytest.mark.parametrize("seq", [1, 5, -1])
def test_a_seq_that_is_not_next_is_refused_r1(seq: int) -> None:
    with pytest.raises(EventSequenceError):
        fold([record("todo/write", seq, {})])


def test_the_sequence_is_checked_before_the_marker_r55() -> None:
    with pytest.raises(EventSequenceError):
        fold([record("user/message", 5, user())])


def test_the_marker_is_checked_before_the_sources_r55() -> None:
    refused(SurfaceOpError, (*U, {"surfaceOp": 5, "sourceEventSeqs": []}))


@pytest.mark.parametrize(("first", "last"), [(1, 0), (0, 1), (1, 1), (7, 7)])
def test_end_points_must_be_earlier_r49(first: int, last: int) -> None:
    assert "not an earlier event" in refused(ReplaceRangeError, U, (*U, over(first, last, [0])))


def test_earliness_is_checked_before_the_sources_r49() -> None:
    refused(ReplaceRangeError, U, (*U, over(0, 1, [])))


def test_assistant_messages_cite_nothing_r50_r51() -> None:
    assert "assistant" in refused(SourceRefsError, U, (*A, {**APPEND, "sourceEventSeqs": [0]}))
    refused(SourceRefsError, U, (*A, over(0, 0, [0])))
    refused(
        ReplaceCoverageError,
        U,
        (*A, {"surfaceOp": {"op": "replace", "startSeq": 0, "endSeq": 0}}),
    )


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        (None, "not a list"),
        ({}, "not a list"),
        ("0", "not a list"),
        (0, "not a list"),
        ([], "is empty"),
        ([-1], "source -1 is not a seq"),
        ([0.5], "source 0.5 is not a seq"),
        ([True], "source True is not a seq"),
        ([None], "source None is not a seq"),
        ([0, "1"], "source '1' is not a seq"),
        ([0, 0], "twice"),
        ([0, 0.0], "twice"),
        ([2], "source 2 is not an earlier event"),
        ([0, 99], "source 99 is not an earlier event"),
        ([99, 99, None], "source None is not a seq"),
        ([99, 99], "twice"),
    ],
)
def test_wrong_sources_are_refused_in_order_r52_r53(sources: Json, reason: str) -> None:
    assert reason in refused(SourceRefsError, U, L, (*U, {**APPEND, "sourceEventSeqs": sources}))


def test_any_earlier_event_may_be_cited_r54() -> None:
    assert nodes(U, L, (*U, replace(0, 0)), (*U, {**APPEND, "sourceEventSeqs": [1, 0]})) == [2, 3]


def test_end_points_must_be_on_the_surface_r56_r60() -> None:
    hidden = (*U, replace(0, 0))

    assert "names 0, which is not on" in refused(
        ReplaceRangeError, U, U, hidden, (*U, replace(0, 1))
    )
    assert "names 0, which is not on" in refused(
        ReplaceRangeError, U, U, hidden, (*U, replace(1, 0))
    )
    assert "names 1, which is not on" in refused(ReplaceRangeError, U, L, (*U, replace(1, 1)))


def test_the_start_is_looked_up_first_r56() -> None:
    assert "names 1," in refused(ReplaceRangeError, U, L, L, (*U, over(1, 2)))


def test_the_range_is_one_of_positions_r57() -> None:
    swapped = log(U, U, (*U, replace(0, 0)), (*U, over(2, 1, [1, 2])))

    assert list(fold(swapped).surface.nodes) == [3]
    assert "stands after" in refused(
        ReplaceRangeError, U, U, (*U, replace(0, 0)), (*U, over(1, 2, [1, 2]))
    )


def test_every_hidden_node_must_be_cited_r58() -> None:
    assert "hides node 1" in refused(ReplaceCoverageError, U, U, U, (*U, over(0, 2, [0, 2])))
    assert nodes(U, L, U, (*U, over(0, 2, [2, 1, 0]))) == [3]


def test_a_replacement_needs_sources_at_all_r58() -> None:
    marker = {"op": "replace", "startSeq": 0, "endSeq": 0}

    refused(ReplaceCoverageError, U, (*U, {"surfaceOp": marker}))


def test_a_replacement_stands_where_the_range_was_r59() -> None:
    assert nodes(U, U, U, U, (*U, replace(1, 2))) == [0, 4, 3]


def test_a_replacement_can_be_replaced_r61() -> None:
    assert nodes(U, U, (*U, replace(0, 0)), (*U, replace(2, 2)), (*S, over(3, 1, [3, 1]))) == [4]


def test_a_tool_result_replaces_one_tool_result_r62_r63() -> None:
    assert nodes(T, ("tool/result", tool_result("c", text("cut")), replace(0, 0))) == [1]
    assert "2 node(s)" in refused(ToolRewriteError, T, T, (*T, replace(0, 1)))
    assert "exactly one tool result" in refused(ToolRewriteError, U, (*T, replace(0, 0)))


def test_other_types_may_replace_tool_results_r69() -> None:
    assert nodes(T, T, (*U, replace(0, 1))) == [2]


@pytest.mark.parametrize(
    "change",
    [
        {"turn": 2},
        {"step": "1"},
        {"step": True},
        {"error": None},
        {"meta": {}},
        {"x": 1},
        {"message": {**tool_result("c")["message"], "id": "other"}},
        {"message": {**tool_result("c")["message"], "x": 1}},
        {"message": tool_result("d")["message"]},
    ],
)
def test_a_rewrite_changes_the_blocks_content_alone_r64_r65(change: Record) -> None:
    data = {**tool_result("c", text("cut")), **change}

    assert "changes more of 0" in refused(ToolRewriteError, T, ("tool/result", data, replace(0, 0)))


@pytest.mark.parametrize("is_error", [True, False, None])
def test_a_rewrite_keeps_is_error_r64(is_error: Json) -> None:
    data = tool_result("c", text("cut"))
    data["message"]["content"][0]["isError"] = is_error

    refused(ToolRewriteError, T, ("tool/result", data, replace(0, 0)))


def test_key_order_is_no_difference_r65() -> None:
    data = tool_result("c")
    shuffled = dict(reversed(data.items()))

    assert nodes(T, ("tool/result", shuffled, replace(0, 0))) == [1]


def test_a_rewrite_is_compared_with_the_stored_event_r66() -> None:
    block = {"type": "image", "attachment": {}}
    first = tool_result("c", block)
    offload = ("image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})

    assert nodes(("tool/result", first), offload, ("tool/result", first, replace(0, 0))) == [2]


def test_the_leading_prompt_yields_to_a_prompt_alone_r67() -> None:
    assert nodes(S, U, (*S, replace(0, 0))) == [2, 1]
    assert "leading system message (seq 0)" in refused(SystemHeadError, S, U, (*U, replace(0, 0)))
    refused(SystemHeadError, S, U, (*S, replace(0, 1)))
    refused(SystemHeadError, S, U, (*U, replace(0, 1)))


def test_a_later_prompt_is_free_r68_r69() -> None:
    assert nodes(U, S, (*U, replace(0, 1))) == [2]
    assert nodes(S, S, U, (*U, replace(1, 2))) == [0, 3]


def test_the_tool_rule_comes_before_the_system_rule_r70() -> None:
    refused(ToolRewriteError, S, (*T, replace(0, 0)))


def test_coverage_comes_before_the_tool_rule_r70() -> None:
    refused(ReplaceCoverageError, U, U, (*T, over(0, 1, [0])))


def test_the_result_lists_replacements_in_log_order_r71() -> None:
    result = fold(log(U, U, U, (*U, replace(2, 2)), (*U, over(0, 3, [0, 1, 3]))))

    first, second = result.replacements
    assert (first.seq, first.start, first.end, first.shadowed) == (3, 2, 2, (2,))
    assert (second.seq, second.start, second.end, second.shadowed) == (4, 0, 3, (0, 1, 3))
    assert (result.surface.replace_generation, result.surface.content_generation) == (2, 2)


def test_appends_and_log_only_events_advance_no_generation_r76() -> None:
    surface = fold(log(S, U, A, T, L)).surface

    assert (surface.replace_generation, surface.content_generation) == (0, 0)


def test_an_omission_advances_the_content_alone_r75() -> None:
    content = {"type": "image", "attachment": {}}
    offload = ("image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})

    surface = fold(log(("user/message", user("u", content)), offload)).surface

    assert (surface.replace_generation, surface.content_generation) == (0, 1)


def test_the_fold_takes_events_that_no_door_would_r23() -> None:
    odd = [("user/message", 5), ("tool/result", None), ("request/header", {"header": 1})]

    result = fold(log(*odd))

    assert list(result.surface.nodes) == [0, 1]
    assert result.messages() == [(0, 5)]


def test_folding_an_empty_log_gives_an_empty_surface() -> None:
    result = fold([])

    assert (list(result.surface.nodes), result.replacements, result.messages()) == ([], (), [])
