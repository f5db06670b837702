"""The lock and others who write meanwhile: R162, R277, R280, and B2, B9, D10, D12 of the field reports."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from everfold.host.access import HostedSession
from everfold.llm.chunks import TextDelta
from everfold.llm.route import LlmRequest
from everfold.projections.compaction.bracket import lock_of
from everfold.projections.compaction.engine import Compacted, NothingToDo
from everfold.projections.compaction.errors import (
    CompactionBusyError,
    CompactionChangedError,
    CompactionError,
)
from everfold.projections.compaction.job import CompactionWish
from everfold.routes.scripted import Reply, hangs, says
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import StoreUnavailableError
from everfold.session.ports import SessionStore
from tests.compaction.kit import (
    SUMMARY,
    StrictRoute,
    compact,
    compacted,
    compactor,
    metered,
    prompted,
    run,
    run_meanwhile,
    turn,
)
from tests.domain.kit import log, replace, text, user, wishes_of
from tests.projections.kit import again, hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1), *turn(2))
END = len(TALK) - 1
START = AppendEvent("compaction/start", {"compactionId": "k", "turn": None})


def meanwhile(act: Callable[[], Any]) -> Callable[[LlmRequest], Reply]:
    """Return a script step during which something happens elsewhere, before the summary comes."""

    def step(request: LlmRequest) -> Reply:
        act()
        return says(SUMMARY)

    return step


def test_r280_a_start_without_end_is_a_lock(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    access.append([START])
    route = a_route()

    with pytest.raises(CompactionBusyError, match=f"under way since seq {END + 1}") as refused:
        compact(access, route)

    assert refused.value.code == "busy"
    assert "`sessions.resume('s')` frees the session" in str(refused.value)
    assert (route.requests, types_after(access, END)) == ([], ["compaction/start"])


@pytest.mark.parametrize(
    "freeing",
    [
        AppendEvent("compaction/end", {"compactionId": "k", "turn": None, "error": "x"}),
        AppendEvent("session/end-seed", {}),
    ],
)
def test_r280_an_end_or_an_end_of_seed_frees_it(
    store: SessionStore, a_route: RouteMaker, freeing: AppendEvent
) -> None:
    access = hosted(store, TALK)
    access.append([START, freeing])

    assert lock_of(access.view()) is None
    assert compacted(access, a_route()).hidden == (3, 4)


def test_r162_a_crash_in_a_compaction_is_freed_by_resuming(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    access.append([START])

    access.sessions.resume("s")

    assert compacted(again(access), a_route()).hidden == (3, 4)


def test_a_lock_that_was_freed_meanwhile_drops_the_summary_and_ends_nothing(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    other = again(access)

    with pytest.raises(CompactionChangedError, match="ended by another process"):
        compact(access, a_route(meanwhile(lambda: other.sessions.resume("s"))))

    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "session/end-seed",
    ]


def test_d12_compacting_again_at_once_is_a_no_op_with_a_reason(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    compacted(access, a_route())
    before, route = shown(access), a_route()

    second = compact(again(access), route)

    assert isinstance(second, NothingToDo)
    assert "nothing was said since the last compaction" in second.reason
    assert (shown(access), route.requests) == (before, [])


def test_d12_two_processes_at_once_make_one_summary(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    refused: list[CompactionError] = []

    def second() -> None:
        with pytest.raises(CompactionBusyError) as busy:
            run_meanwhile(compactor(a_route()).compact(again(access), CompactionWish()))
        refused.append(busy.value)

    compacted(access, a_route(meanwhile(second)))

    assert [error.code for error in refused] == ["busy"]
    assert types_after(access, END).count("compaction/summary") == 1


def test_d12_after_a_resume_no_covered_message_returns(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    compacted(access, a_route())
    after = shown(access)

    later = again(access)
    later.sessions.resume("s")
    later.append([message("user/message", user("u-9", text("and now?")))])

    assert shown(later)[:-1] == after


def test_b2_a_user_message_meanwhile_is_accepted_and_both_results_stand_in_order(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    other = again(access)
    words = message("user/message", user("u-9", text("and now?")))

    outcome = compacted(access, a_route(meanwhile(lambda: other.append([words]))))

    assert [seq for seq, _ in shown(access)] == [0, outcome.seq, 7, 8, END + 3]
    assert shown(access)[-1][1]["content"] == [text("and now?")]
    assert shown(again(access)) == shown(access)


def test_r277_an_automatic_compaction_yields_when_anything_changed(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    other = again(access)
    words = message("user/message", user("u-9", text("and now?")))
    route = a_route(meanwhile(lambda: other.append([words])))
    engine = compactor(route, keep_tokens=300)

    with pytest.raises(CompactionChangedError) as refused:
        run(engine.compact(access, CompactionWish(trigger="pressure")))

    assert refused.value.code == "changed"
    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "user/message",
        "compaction/end",
    ]


def test_r277_a_manual_one_yields_when_its_span_changed(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    other = again(access)
    edit = AppendEvent("user/message", user("u-1b", text("q")), replace(3, 3))

    with pytest.raises(CompactionChangedError, match="no longer together"):
        compact(access, a_route(meanwhile(lambda: other.append([edit]))))

    assert [seq for seq, _ in shown(access)] == [0, END + 3, 4, 7, 8]


def test_b9_what_others_committed_is_still_there(store: SessionStore, a_route: RouteMaker) -> None:
    """The commit is decided again on the new history, and never written over it."""
    access = hosted(store, TALK)
    other = again(access)

    def race() -> None:
        for number in range(5):
            other.append([message("user/message", user(f"h-{number}", text(f"hello-{number}")))])

    compacted(access, a_route(meanwhile(race)))

    texts = [m["content"][0]["text"] for _, m in shown(again(access))]
    assert texts[-5:] == [f"hello-{number}" for number in range(5)]


def test_d10_no_bracket_reaches_over_the_bounds_of_a_turn(
    store: SessionStore, a_route: RouteMaker
) -> None:
    opening = log(("turn/start", {"turn": 3}), ("user/message", user("u-3", text("go on"))))
    access = hosted(store, [*TALK, *({**row, "seq": 0} for row in opening)])
    other = again(access)

    def next_turn() -> None:
        end = AppendEvent("turn/end", {"turn": 3, "reason": {"kind": "completed"}})
        other.append([end, AppendEvent("turn/start", {"turn": 4})])

    batches: list[list[str]] = []
    access.sessions.observers.append(lambda _id, events: batches.append([e.type for e in events]))

    outcome = compacted(access, a_route(meanwhile(next_turn)))

    closed, start, summary, replacing, end = access.sessions.log("s", first=END + 7)
    assert batches[-1] == [e.type for e in (closed, start, summary, replacing, end)]
    assert closed.data["error"] == "cancelled: the turn ended meanwhile"
    assert closed.data["turn"] == 3
    names = {"compactionId": outcome.compaction_id, "turn": 4}
    assert start.data == end.data == names
    assert replacing.source_event_seqs == sorted([*outcome.hidden, start.seq, summary.seq])
    assert lock_of(access.view()) is None
    meter = metered(access)
    assert meter.state.total == meter.state.surface.fixed


def test_d10_a_turn_that_began_and_ended_meanwhile_is_seen_too(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    other = again(access)
    whole_turn = wishes_of(log(*turn(3)))

    outcome = compacted(access, a_route(meanwhile(lambda: other.append(whole_turn))))

    types = types_after(access, END + 2 + len(whole_turn))
    assert types[:2] == ["compaction/end", "compaction/start"]
    assert outcome.hidden == (3, 4)


def test_r279_exactly_one_end_is_attempted(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    attempts: list[str] = []

    def refuse_ends(session: Any, events: Any) -> None:
        attempts.extend(event.type for event in events)
        if events[-1].type == "compaction/end":
            raise StoreUnavailableError("gone")

    access.sessions.publications.append(refuse_ends)

    with pytest.raises(CompactionError):
        compact(access, a_route())

    assert attempts == [
        "compaction/start",
        "compaction/request",
        "compaction/summary",
        "user/message",
        "compaction/end",
        "compaction/end",
    ]


def test_while_a_summary_is_made_only_the_lock_and_the_request_are_stored(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    route = a_route(hangs(TextDelta(0, "so")))
    work = compactor(route).compact(access, CompactionWish())

    async def start_and_forget() -> Any:
        task = asyncio.ensure_future(work)
        while not route.sent:
            await asyncio.sleep(0)
        left = types_after(access, END)
        task.cancel()
        await asyncio.wait({task})
        return left

    assert run(start_and_forget()) == ["compaction/start", "compaction/request"]


def results(access: HostedSession, *works: Any) -> list[Any]:
    """Run compactions side by side."""

    async def both() -> list[Any]:
        return list(await asyncio.gather(*works, return_exceptions=True))

    return run(both())


def test_d12_side_by_side_in_one_process_one_wins(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    engine = compactor(a_route())

    outcomes = results(access, *(engine.compact(access, CompactionWish()) for _ in range(3)))

    assert [type(outcome) for outcome in outcomes] == [
        Compacted,
        CompactionBusyError,
        CompactionBusyError,
    ]
