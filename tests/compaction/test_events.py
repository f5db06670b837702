"""What a compaction stores and what the model sees after it: R279, R281, R282, R285, R290, R309, D10."""

from collections.abc import Callable

import pytest

from everfold.projections.compaction.wishes import CLOSING, OPENING
from everfold.projections.token_meter.prices import message_price
from everfold.session.ports import SessionStore
from tests.compaction.kit import (
    HEADER,
    SUMMARY,
    TOOLS,
    StrictRoute,
    compacted,
    last_request,
    metered,
    prompted,
    turn,
)
from tests.domain.kit import image, log, omit, replace, text, user, wishes_of
from tests.projections.kit import again, hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1), *turn(2), *turn(3))
END = len(TALK) - 1
BATCH = ["compaction/summary", "user/message", "compaction/end"]


def test_r279_it_stores_start_summary_replacement_and_end(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    outcome = compacted(access, a_route(), command_id="cmd-1")

    start, _, summary, message, end = access.sessions.log("s", first=END + 1)
    names = {"compactionId": outcome.compaction_id, "sourceCommandId": "cmd-1"}
    assert start.type == "compaction/start"
    assert start.data == {**names, "turn": None}
    assert summary.data == {
        **names,
        "summary": [text(SUMMARY)],
        "shadowedRange": {"start": 3, "end": 8},
        "shadowedSeqs": [3, 4, 7, 8],
        "shadowedTokenCount": sum(message_price(m) for s, m in shown_before() if s in (3, 4, 7, 8)),
        "provider": "scripted",
        "model": "m",
        "maxTokens": 8192,
        "rawOutput": [text(SUMMARY)],
        "llmStreamCall": True,
        "usage": {"inputTokens": 10, "outputTokens": 9},
    }
    assert message.seq == outcome.seq
    assert end.data == {**names, "turn": None}


def shown_before() -> list[tuple[int, dict[str, object]]]:
    """Return seq and message of each node of the talk."""
    return [(e["seq"], e["data"].get("message", e["data"])) for e in TALK if "surfaceOp" in e]


def test_r281_the_replacing_message_cites_start_summary_and_all_it_hides(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    outcome = compacted(access, a_route(), command_id="cmd-1")

    message = access.view().event(outcome.seq)
    assert message is not None
    assert message.surface_op == {"op": "replace", "startSeq": 3, "endSeq": 8}
    assert message.source_event_seqs == [3, 4, 7, 8, END + 1, END + 3]
    assert message.data["source"] == {
        "kind": "plugin",
        "plugin": "compact",
        "compactionId": outcome.compaction_id,
        "sourceCommandId": "cmd-1",
    }


def test_r282_its_content_is_the_summary_between_two_framing_blocks(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    outcome = compacted(access, a_route())

    message = dict(shown(access))[outcome.seq]
    assert message["content"] == [text(OPENING), text(SUMMARY), text(CLOSING)]


def test_the_newest_turn_and_the_prompt_stay(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    before = shown(access)

    outcome = compacted(access, a_route())

    after = shown(access)
    assert [seq for seq, _ in after] == [0, outcome.seq, 11, 12]
    assert after[0] == before[0]
    assert after[2:] == before[-2:]
    assert shown(again(access)) == after


def test_r285_the_input_is_the_head_prompt_the_span_and_the_instruction(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    route = a_route()
    before = [message for _, message in shown(access)]

    compacted(access, route, focus="the boat")

    request = last_request(route)
    assert list(request.messages[:-1]) == before[:5]
    assert request.messages[-1]["content"][0]["text"].endswith("Dwell on this: the boat")
    assert request.config == {**HEADER["config"], "maxTokens": 8192}


def test_r285_omitted_images_are_seen_as_omitted(store: SessionStore, a_route: RouteMaker) -> None:
    rows = log(*prompted(), *turn(1, images=[image(1)]), *turn(2))
    access = hosted(store, [*rows, {**rows[-1], "type": "image/offload", "data": omit((3, [0]))}])
    route = a_route()

    compacted(access, route)

    assert last_request(route).messages[1]["content"][1] == image(1, offloaded=True)


def test_d11_with_tools_declared_the_prefix_is_the_sessions_own(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, log(*prompted(tools=True), *turn(1, tools=2), *turn(2)))
    route = a_route()
    before = [message for _, message in shown(access)]

    compacted(access, route)

    request = last_request(route)
    assert request.header["tools"] == TOOLS
    assert list(request.messages[:-1]) == before[:6]


def test_d11_without_tools_calls_and_results_are_text(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, log(*prompted(), *turn(1, tools=1, size=20), *turn(2), *turn(3)))
    route = a_route()

    compacted(access, route)

    messages = last_request(route).messages
    assert messages[2]["content"] == [text('[Called tool read with {"path":"a"}]')]
    assert messages[3]["content"] == [text("[Result of tool call c-1-0:]"), text("r" * 20)]


def test_r290_the_range_is_by_position_so_its_start_may_be_the_greater_seq(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = log(
        *prompted(),
        ("user/message", user("u", text("q" * 900))),
        ("user/message", user("v", text("q" * 900))),
        ("user/message", user("w", text("new"))),
        ("user/message", user("x", text("y" * 900)), replace(2, 2)),
    )
    access = hosted(store, rows)

    compacted(access, a_route())

    summary = access.sessions.log("s", first=8, last=8)
    assert next(iter(summary)).data["shadowedRange"] == {"start": 5, "end": 3}


def test_d10_all_but_the_lock_and_the_request_is_stored_in_one_batch(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    batches: list[list[str]] = []
    access.sessions.observers.append(lambda _id, events: batches.append([e.type for e in events]))

    compacted(access, a_route())

    assert batches == [["compaction/start", "compaction/request"], BATCH]


def test_r309_the_meters_running_total_is_right_after_it(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    compacted(access, a_route())

    meter = metered(access)
    assert meter.state.total == meter.state.surface.fixed
    assert meter.state.surface.fixed == sum(message_price(m) for _, m in shown(access))


@pytest.mark.parametrize("times", [2, 3])
def test_compactions_of_compactions_keep_only_the_newest_summary(
    store: SessionStore, a_route: RouteMaker, times: int
) -> None:
    access = hosted(store, TALK)
    for number in range(times):
        compacted(access, a_route())
        more = log(*turn(10 + number))
        access.append(wishes_of(more))

    kinds = [message["source"].get("plugin") for _, message in shown(access)]

    assert kinds.count("compact") == 1
    assert types_after(access, END).count("compaction/end") == times
