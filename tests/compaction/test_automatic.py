"""Automatic compactions: pressure, overflow, R287, and D6 of the field reports."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from everfold.llm.failure import FailureCode
from everfold.plugins.plugin import PluginError
from everfold.plugins.waterfalls import PreStepAnswer, Retry, ask
from everfold.projections.compaction.plugin import mount, settings_of
from everfold.projections.compaction.settings import CompactionSettings
from everfold.routes.scripted import fails, says
from everfold.session.deciding import AppendEvent, message
from everfold.session.ports import SessionStore
from tests.compaction.kit import StrictRoute, prompted, run, turn
from tests.compaction.mounting import LendingMount, mounted
from tests.domain.kit import image, log, system, text, user, wishes_of
from tests.projections.kit import hosted, pre_step, request_error, shown, types_after

RouteMaker = Callable[..., StrictRoute]
WINDOW = 4000
TALK = log(*prompted(), *(row for n in range(8) for row in turn(n + 1, size=900)))
"""About 3,700 tokens: over 85 % of the window."""
END = len(TALK) - 1
COMPACTION = [
    "compaction/start",
    "compaction/request",
    "compaction/summary",
    "user/message",
    "compaction/end",
]


def step(host: LendingMount, access: Any, window: int | None = WINDOW) -> PreStepAnswer:
    """Do what a loop does before a step."""
    question = pre_step(access, window, provider="scripted")
    return run(ask(host.waterfalls.pre_step, question, PreStepAnswer(), _raise))


def overflow(host: LendingMount, access: Any, code: str | None = None) -> Any:
    """Do what a loop does after a request that was too long."""
    question = request_error(access, code or FailureCode.CONTEXT_WINDOW_EXCEEDED)
    question = type(question)(**{**_fields(question), "provider": "scripted"})
    return run(ask(host.waterfalls.request_error, question, None, _raise))


def _fields(value: Any) -> Mapping[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _raise(plugin: str, error: BaseException) -> None:
    raise error


def words(number: int, size: int = 10) -> AppendEvent:
    """Return the wish to append what a user says."""
    return message("user/message", user(f"w-{number}", text("w" * size)))


def test_pressure_is_met_before_the_step(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))

    step(host, access)

    assert types_after(access, END) == COMPACTION
    assert len(shown(access)) < 8


def test_below_the_threshold_nothing_happens(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    route = a_route(window=2 * WINDOW)
    host = mounted(access.sessions, route)

    step(host, access, 2 * WINDOW)
    step(host, access, None)

    assert types_after(access, END) == []
    assert route.requests == []


def test_what_a_provider_counted_is_what_presses(store: SessionStore, a_route: RouteMaker) -> None:
    answer = wishes_of(log(*turn(9)))
    usage = {"inputTokens": 7000, "outputTokens": 10}
    answered = [
        AppendEvent(wish.type, {**wish.data, "usage": usage}, wish.options)
        if wish.type == "assistant/message"
        else wish
        for wish in answer
    ]
    access = hosted(store, TALK)
    access.append(answered)
    before = access.view().next_seq - 1
    host = mounted(access.sessions, a_route(window=2 * WINDOW))

    step(host, access, 2 * WINDOW)

    assert types_after(access, before) == COMPACTION


def test_room_for_the_answer_is_part_of_the_pressure(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = log(*prompted(maxTokens=3000), *(r for n in range(8) for r in turn(n + 1, size=900)))
    access = hosted(store, rows)
    host = mounted(access.sessions, a_route(window=6000))

    step(host, access, 6000)

    assert types_after(access, END) == COMPACTION


def test_overflow_is_met_by_a_compaction_and_costs_no_retry(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))

    answer = overflow(host, access)

    assert answer == Retry(spends_budget=False)
    assert types_after(access, END) == COMPACTION


def test_other_failures_are_passed_on(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))

    assert overflow(host, access, FailureCode.SERVER) is None
    assert types_after(access, END) == []


def test_r287_an_omission_is_no_progress_after_an_overflow(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = log(*prompted(), *turn(1, size=3000, images=[image(1)]), *turn(2, size=3000))
    access = hosted(store, rows)
    needs_one = fails(FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=1)
    host = mounted(access.sessions, a_route(needs_one, fails(FailureCode.AUTH), window=WINDOW))

    answer = overflow(host, access)

    assert answer is None
    assert types_after(access, len(rows) - 1) == [
        "compaction/start",
        "compaction/request",
        "image/offload",
        "compaction/request",
        "compaction/end",
    ]


def test_r287_a_replacement_by_somebody_else_is_progress(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))

    async def elsewhere(question: Any, ask_next: Any) -> Any:
        marker = {"op": "replace", "startSeq": 3, "endSeq": 3}
        options = {"surfaceOp": marker, "sourceEventSeqs": [3]}
        access.append([AppendEvent("user/message", user("u-1", text("short")), options)])
        return await ask_next()

    host.waterfalls.request_error.register("elsewhere", elsewhere)
    access.append([AppendEvent("compaction/start", {"compactionId": "other", "turn": None})])

    assert overflow(host, access) == Retry(spends_budget=False)


def test_d6_a_fixed_overhead_above_the_threshold_is_named_once_a_message(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """Window 30,000, prompt 28,000: no model is asked in vain, and the log says why."""
    rows = log(("system/message", system("s", text("p" * 112_000))), prompted()[1])
    access = hosted(store, rows)
    route = a_route(window=30_000)
    host = mounted(access.sessions, route)

    for number in range(3):
        access.append([words(number)])
        for _ in range(4):
            step(host, access, 30_000)

    assert route.requests == []
    skips = [e.data for e in access.sessions.log("s") if e.type == "compaction/skipped"]
    assert len(skips) == 3
    assert skips[0]["reason"].startswith("system prompt and tools alone take 28004 of 30000 tokens")


def test_d6_a_failing_summary_is_tried_once_a_message(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    route = a_route(window=WINDOW)
    route.otherwise = says("  ")
    host = mounted(access.sessions, route)

    for number in range(3):
        access.append([words(number)])
        for _ in range(4):
            step(host, access)
            overflow(host, access)

    assert len(route.sent) == 3
    ends = [e.data for e in access.sessions.log("s") if e.type == "compaction/end"]
    assert ["holds no words" in end["error"] for end in ends] == [True] * 3


def test_d6_one_message_longer_than_the_threshold_ends_with_a_reason(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, log(*prompted(), ("user/message", user("u", text("x" * 20_000)))))
    route = a_route(window=WINDOW)
    host = mounted(access.sessions, route)

    step(host, access)
    answer = overflow(host, access)
    again_ = overflow(host, access)

    assert (answer, again_, route.requests) == (None, None, [])
    reasons = [e.data for e in access.sessions.log("s") if e.type == "compaction/skipped"]
    assert [r["trigger"] for r in reasons] == ["pressure", "overflow"]
    assert "nothing before the newest messages" in reasons[0]["reason"]


def test_d6_a_long_turn_is_summarised_again_once_it_has_grown(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """One message of the user, many steps: each attempt needs a quarter of the window of growth."""
    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))
    totals = []
    for number in range(40):
        step(host, access)
        step(host, access)
        rows = [row for row in turn(number + 20, size=300) if row[0] == "assistant/message"]
        access.append(wishes_of(log(*rows)))
        totals.append(types_after(access, END).count("compaction/summary"))

    assert totals[0] == 1
    assert 2 <= totals[-1] <= 6
    assert types_after(access, END).count("compaction/skipped") == 0


def test_the_limit_survives_a_restart(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    route = a_route(window=WINDOW)
    route.otherwise = says("  ")
    step(mounted(access.sessions, route), access)

    step(mounted(access.sessions, route), access)

    assert len(route.sent) == 1


def test_a_log_that_cannot_be_metered_is_still_summarised(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """An imported log may state a price for another range than its replacement has (R309)."""
    price = {"shadowedRange": {"start": 3, "end": 4}, "shadowedSeqs": [3], "shadowedTokenCount": 1}
    marker = {"op": "replace", "startSeq": 3, "endSeq": 3}
    options = {"surfaceOp": marker, "sourceEventSeqs": [3]}
    access = hosted(store, TALK)
    access.append(
        [
            AppendEvent("compaction/prune", price),
            AppendEvent("user/message", user("u-1", text("x" * 900)), options),
        ]
    )
    host = mounted(access.sessions, a_route(window=WINDOW))

    step(host, access)

    assert types_after(access, END + 2) == COMPACTION


def test_a_cancelled_turn_starts_no_compaction(store: SessionStore, a_route: RouteMaker) -> None:
    class Asked:
        is_set = True

    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))
    question = pre_step(access, WINDOW, provider="scripted", cancellation=Asked())

    run(ask(host.waterfalls.pre_step, question, PreStepAnswer(), _raise))

    assert types_after(access, END) == []


def test_cheaper_recoveries_come_first(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))

    async def recovers(question: Any, ask_next: Any) -> Any:
        return Retry(spends_budget=False, delay_ms=7)

    host.waterfalls.request_error.register("cheaper", recovers)

    assert overflow(host, access) == Retry(spends_budget=False, delay_ms=7)
    assert types_after(access, END) == []


def test_after_disposal_nothing_is_summarised(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    host = mounted(access.sessions, a_route(window=WINDOW))

    host.leave()
    step(host, access)

    assert overflow(host, access) is None
    assert types_after(access, END) == []


def test_a_host_without_models_gets_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Bare:
        def __init__(self) -> None:
            self.settings: Mapping[str, object] = {}

    with caplog.at_level(logging.WARNING):
        mount(Bare())  # type: ignore[arg-type]  # less than a mount, on purpose

    assert "no automatic compaction" in caplog.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"treshold": 0.5}, "has no setting 'treshold'"),
        ({"threshold": "x"}, "takes float for threshold"),
        ({"threshold": 2}, "shares above 0 and up to 1"),
        ({"keep_tokens": True}, "takes int for keep_tokens"),
        ({"keep_tokens": -1}, "not below 0"),
        ({"max_passes": 0}, "at least 1"),
        ({"model": "m"}, "provider and model go together"),
    ],
)
def test_a_wrong_setting_stops_the_start(given: dict[str, object], said: str) -> None:
    with pytest.raises(PluginError, match=said):
        settings_of(given)


def test_settings_reach_the_engine() -> None:
    made = settings_of({"threshold": 1, "keep_tokens": 5, "provider": "p", "model": "m"})

    assert made == CompactionSettings(threshold=1, keep_tokens=5, provider="p", model="m")
