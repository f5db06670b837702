"""The pruner on live sessions: R294, R295, R297, and D9 of the field reports."""

import asyncio

import pytest

from everfold.host.access import HostedSession
from everfold.llm.failure import FailureCode
from everfold.plugins.plugin import PluginError
from everfold.plugins.waterfalls import PreStepAnswer, Retry
from everfold.projections.token_meter.meter import Meter
from everfold.projections.token_meter.prices import message_price
from everfold.projections.tool_result_pruner.cutting import PruneLimits, marker_text
from everfold.projections.tool_result_pruner.plugin import NAME, pruner
from everfold.projections.tool_result_pruner.pruning import cuts, prune
from everfold.projections.tool_result_pruner.trigger import Pruner
from everfold.session.deciding import message
from everfold.session.errors import SessionError
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.domain.kit import assistant, image, log, omit, system, text, tool_result, user
from tests.projections.kit import (
    again,
    hosted,
    nothing,
    pre_step,
    request_error,
    shown,
    types_after,
)

LIMITS = PruneLimits(threshold=120, head=10, tail=5)
LONG = "h" * 10 + "m" * 300 + "t" * 5
CUT = "h" * 10 + marker_text(300) + "t" * 5

HISTORY = log(
    ("system/message", system("s", text("be brief"))),
    ("user/message", user("u", text(LONG))),
    ("tool/result", tool_result("c", text(LONG), image(1), image(2))),
    ("tool/result", tool_result("d", text("short"))),
    ("image/offload", omit((2, [1]))),
    ("tool/result", tool_result("e", text(LONG), error={"name": "E", "code": "X"})),
)
HISTORY[5]["data"]["message"]["content"][0]["isError"] = True


def run_all(access: HostedSession) -> int:
    """Shorten every long result of a session."""
    return prune(access, [cut.seq for cut in cuts(access.view(), LIMITS)], LIMITS)


def test_r294_current_tool_results_are_looked_at_in_surface_order(store: SessionStore) -> None:
    access = hosted(store, HISTORY)

    found = cuts(access.view(), LIMITS)

    assert [cut.seq for cut in found] == [2, 5]


def test_r294_marks_of_omitted_images_survive_in_the_copy(store: SessionStore) -> None:
    access = hosted(store, HISTORY)

    run_all(access)

    copy = shown(access)[2][1]
    assert copy["content"][0]["content"] == [text(CUT), image(1), image(2, offloaded=True)]


def test_r295_each_is_a_price_and_directly_after_it_the_replacement(store: SessionStore) -> None:
    access = hosted(store, HISTORY)
    before = dict(shown(access))

    assert run_all(access) == 2

    assert types_after(access, 5) == ["compaction/prune", "tool/result"] * 2
    price, copy = list(access.sessions.log("s", first=6, last=7))
    assert price.data == {
        "shadowedRange": {"start": 2, "end": 2},
        "shadowedSeqs": [2],
        "shadowedTokenCount": message_price(before[2]),
    }
    assert copy.surface_op == {"op": "replace", "startSeq": 2, "endSeq": 2}
    assert copy.source_event_seqs == [2]


def test_the_copy_keeps_everything_but_the_content(store: SessionStore) -> None:
    access = hosted(store, HISTORY)

    run_all(access)

    copy = access.view().event(9)
    assert copy is not None
    assert copy.data["error"] == {"name": "E", "code": "X"}
    assert copy.data["message"]["id"] == "r-e"
    assert copy.data["message"]["content"][0]["isError"] is True


def test_the_meter_follows_a_pass(store: SessionStore) -> None:
    access = hosted(store, HISTORY)
    run_all(access)
    meter = Meter()

    meter.read(access.sessions.log("s"))

    assert meter.state.total == meter.state.surface.fixed
    assert meter.state.total == sum(message_price(m) for _, m in shown(access))


def test_a_second_pass_finds_nothing(store: SessionStore) -> None:
    access = hosted(store, HISTORY)
    run_all(access)

    assert run_all(access) == 0
    assert shown(again(access)) == shown(access)


def test_r297_earlier_replacements_stay_when_a_later_one_fails(store: SessionStore) -> None:
    access = hosted(store, HISTORY)

    def veto(session: Session, events: object) -> None:
        if session.next_seq > 6:
            raise SessionError("no more of this")

    access.sessions.publications.append(veto)

    with pytest.raises(SessionError, match="no more"):
        run_all(access)

    assert types_after(access, 5) == ["compaction/prune", "tool/result"]


def test_a_result_that_went_away_meanwhile_is_passed_over(store: SessionStore) -> None:
    access = hosted(store, HISTORY)
    seqs = [cut.seq for cut in cuts(access.view(), LIMITS)]
    prune(again(access), seqs[:1], LIMITS)

    assert prune(access, seqs, LIMITS) == 1


def test_d9_a_pass_waits_until_it_saves_enough(store: SessionStore) -> None:
    """60 turns of 5 kB: the prefix that was sent moves four times at most, and stays moved."""
    access = hosted(store, log(("system/message", system("s", text("be brief")))))
    pass_count = 0
    made = Pruner(PruneLimits(threshold=2048, head=1024, tail=256), min_saving=15_000)
    last_sent: list[object] = []
    for number in range(60):
        access.append(
            [
                message("user/message", user(f"u-{number}", text("go on"))),
                message("assistant/message", assistant(f"a-{number}", call(f"c-{number}"))),
                message("tool/result", tool_result(f"c-{number}", text("x" * 5000))),
            ]
        )
        before = access.view().replace_generation
        asyncio.run(made.before_step(pre_step(access), no_wish))
        sent = [body for _, body in shown(access)]
        has_moved = access.view().replace_generation > before
        pass_count += has_moved
        assert has_moved or sent[: len(last_sent)] == last_sent
        last_sent = sent

    assert 1 <= pass_count <= 4
    assert shown(again(access)) == shown(access)


def test_a_result_that_the_model_has_not_answered_is_left_alone(store: SessionStore) -> None:
    rows = log(
        ("user/message", user("u")),
        ("assistant/message", assistant("a", call("c"))),
        ("tool/result", tool_result("c", text(LONG * 20))),
    )
    access = hosted(store, rows)
    made = Pruner(LIMITS, min_saving=0)

    asyncio.run(made.before_step(pre_step(access), no_wish))
    access.append([message("assistant/message", assistant("b", text("I see")))])
    unanswered = types_after(access, 2)
    asyncio.run(made.before_step(pre_step(access), no_wish))

    assert unanswered == ["assistant/message"]
    assert types_after(access, 3) == ["compaction/prune", "tool/result"]


def test_an_overflow_is_answered_by_a_pass_that_costs_no_retry(store: SessionStore) -> None:
    access = hosted(store, HISTORY)
    made = Pruner(LIMITS, min_saving=10)
    question = request_error(access, FailureCode.CONTEXT_WINDOW_EXCEEDED)

    first = asyncio.run(made.after_overflow(question, nothing))
    second = asyncio.run(made.after_overflow(question, nothing))

    assert first == Retry(spends_budget=False)
    assert second is None


def test_another_failure_is_passed_on(store: SessionStore) -> None:
    access = hosted(store, HISTORY)

    answer = asyncio.run(
        Pruner(LIMITS, 0).after_overflow(request_error(access, FailureCode.SERVER), nothing)
    )

    assert answer is None
    assert types_after(access, 5) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"treshold": 1}, "has no setting 'treshold'"),
        ({"head": "x"}, "takes a whole number from 0 for head"),
        ({"threshold": 100, "head": 100}, "more than the threshold of 100"),
    ],
)
def test_a_wrong_setting_stops_the_start(settings: dict[str, object], said: str) -> None:
    with pytest.raises(PluginError, match=said):
        pruner(settings)


def test_settings_reach_the_pruner() -> None:
    made = pruner({"threshold": 3000, "head": 1000, "tail": 200, "min_saving": 5})

    assert made == Pruner(PruneLimits(3000, 1000, 200), 5)
    assert NAME == "tool-result-pruner"


def call(id_: str) -> dict[str, str]:
    """Return a tool-call block."""
    return {"type": "tool-call", "id": id_, "name": "read", "arguments": "{}"}


async def no_wish() -> PreStepAnswer:
    """Answer for the rest of a chain that wants nothing."""
    return PreStepAnswer()
