"""Closing an interrupted log: group X."""

import pytest

from everfold.session import doors
from everfold.session.events import Event
from everfold.session.frozen import Json
from everfold.session.repair import NOT_STARTED, OUTCOME_UNKNOWN, closers
from tests.domain.kit import (
    HEADER,
    Record,
    assistant,
    composition,
    counting_means,
    image,
    log,
    omit,
    record,
    tool_result,
    user,
)

TURN = ("turn/start", {"turn": 4})
STEP = ("step/start", {"turn": 4, "step": 2})
STEP_END = ("step/end", {"turn": 4, "step": 2})
END = {"type": "turn/end", "data": {"turn": 4, "reason": {"kind": "interrupted"}}}
CLOSED = {"type": "step/end", "data": {"turn": 4, "step": 2}}


def call(*ids: Json, step: int = 2) -> tuple[str, Record]:
    """An assistant message that advertises calls."""
    blocks = [{"type": "tool-call", "id": id_, "name": "n", "arguments": "{}"} for id_ in ids]
    return "assistant/message", {**assistant("a", *blocks), "turn": 4, "step": step}


def started(id_: str) -> tuple[str, Json]:
    """A record that a call was started."""
    return "tool/call", {"turn": 4, "step": 2, "callId": id_, "name": "n", "arguments": "{}"}


def closing(*events: tuple[str, Json]) -> list[Record]:
    """The closers of these events."""
    return closers(Event.of(each) for each in log(*events))


def shapes(records: list[Record]) -> list[Json]:
    """What closers say: the call and its code, or type and data."""
    return [
        (each["data"]["message"]["source"]["callId"], each["data"]["error"]["code"])
        if each["type"] == "tool/result"
        else {"type": each["type"], "data": each["data"]}
        for each in records
    ]


@pytest.mark.parametrize(
    "events",
    [
        (),
        (("user/message", user()),),
        (TURN, ("turn/end", {"turn": 4})),
        (TURN, STEP, call("c"), ("turn/end", {"turn": 4})),
        (STEP, call("c")),
    ],
)
def test_a_log_without_an_open_turn_needs_nothing_r322(
    events: tuple[tuple[str, Json], ...],
) -> None:
    assert closing(*events) == []


def test_an_open_turn_is_ended_r329() -> None:
    assert closing(TURN) == [{**END, "seq": 1, "time": 7}]


def test_an_open_step_is_ended_before_its_turn_r329() -> None:
    assert shapes(closing(TURN, STEP)) == [CLOSED, END]
    assert shapes(closing(TURN, STEP, STEP_END)) == [END]


def test_a_call_that_was_never_started_gets_a_result_r324_r325() -> None:
    result, *rest = closing(TURN, STEP, call("c"))

    assert result == {
        "type": "tool/result",
        "seq": 3,
        "time": 7,
        "surfaceOp": "append",
        "data": {
            "turn": 4,
            "step": 2,
            "error": {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"},
            "message": {
                "id": "interrupted-tool-result-c-3",
                "role": "user",
                "source": {"kind": "tool", "callId": "c"},
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c",
                        "isError": True,
                        "content": [{"type": "text", "text": NOT_STARTED}],
                    }
                ],
            },
        },
    }
    assert shapes(rest) == [CLOSED, END]


def test_a_call_that_was_started_has_an_unknown_outcome_r325() -> None:
    result = closing(TURN, STEP, call("c"), started("c"))[0]

    assert result["data"]["error"] == {
        "name": "ToolOutcomeUnknownError",
        "code": "TOOL_OUTCOME_UNKNOWN",
    }
    assert result["sourceEventSeqs"] == [3]
    (block,) = result["data"]["message"]["content"]
    assert block["content"] == [{"type": "text", "text": OUTCOME_UNKNOWN}]


def test_pending_calls_come_in_order_of_advertisement_r324() -> None:
    found = closing(TURN, STEP, call("b", "a"), call("c"), started("c"), started("a"))

    assert shapes(found) == [
        ("b", "TOOL_NOT_STARTED"),
        ("a", "TOOL_OUTCOME_UNKNOWN"),
        ("c", "TOOL_OUTCOME_UNKNOWN"),
        CLOSED,
        END,
    ]
    assert [each["seq"] for each in found] == [6, 7, 8, 9, 10]
    ids = [each["data"]["message"]["id"] for each in found[:3]]
    assert ids == [f"interrupted-tool-result-{name}" for name in ("b-6", "a-7", "c-8")]


def test_a_result_settles_its_call_r323() -> None:
    assert shapes(closing(TURN, STEP, call("a", "b"), ("tool/result", tool_result("a")))) == [
        ("b", "TOOL_NOT_STARTED"),
        CLOSED,
        END,
    ]


@pytest.mark.parametrize("boundary", [STEP_END, TURN])
def test_a_boundary_clears_pending_calls_r323(boundary: tuple[str, Json]) -> None:
    assert shapes(closing(TURN, STEP, call("c"), boundary)) == [END]


def test_advertising_again_forgets_the_start_and_keeps_the_place_r327() -> None:
    found = closing(TURN, STEP, call("a", "b"), started("a"), call("a", step=3))

    assert shapes(found)[:2] == [("a", "TOOL_NOT_STARTED"), ("b", "TOOL_NOT_STARTED")]
    assert [each["data"]["step"] for each in found[:2]] == [3, 2]


def test_a_call_that_was_never_advertised_is_ignored_r328() -> None:
    assert shapes(closing(TURN, STEP, started("x"))) == [CLOSED, END]


def test_the_result_belongs_to_the_step_that_advertised_the_call_r326() -> None:
    found = closing(TURN, STEP, call("c", step=9))

    assert (found[0]["data"]["turn"], found[0]["data"]["step"]) == (4, 9)


def test_closers_continue_a_window_and_take_its_last_time_r330() -> None:
    events = [
        Event.of(record("turn/start", 100, {"turn": 4})),
        Event.of({**record("todo/write", 101, {}), "time": 99}),
    ]

    assert closers(events) == [{**END, "seq": 102, "time": 99}]


def test_projection_events_move_nothing_r331() -> None:
    events = (TURN, STEP, ("user/message", user("u", image())), call("c"))

    with_omission = closing(*events, ("image/offload", omit((2, [0]))))

    assert shapes(with_omission) == shapes(closing(*events))


def test_a_closed_log_is_accepted_and_needs_no_more_r332() -> None:
    records = log(TURN, STEP, call("a", "b"), started("b"))
    repaired = [*records, *closers(Event.of(each) for each in records)]

    adopted = doors.restore(HEADER, repaired, composition(), counting_means())

    assert closers(Event.of(each) for each in repaired) == []
    assert not adopted.session.is_turn_open
    assert len(adopted.session.nodes) == 3


def test_a_turn_without_a_number_is_closed_too() -> None:
    """What `is_turn_open` calls open, the closers close."""
    events = [Event("turn/start", 0, {}, 5), Event("step/start", 1, None, 6)]

    made = closers(events)

    assert [record["type"] for record in made] == ["step/end", "turn/end"]
    assert [record["seq"] for record in made] == [2, 3]


@pytest.mark.parametrize("id_", ["", None, 7])
def test_a_call_that_no_result_can_name_is_passed_over_v1(id_: Json) -> None:
    """A result needs a callId of at least one character (R31), so such a call has no closer."""
    assert shapes(closing(TURN, STEP, call("a", id_))) == [("a", "TOOL_NOT_STARTED"), CLOSED, END]
