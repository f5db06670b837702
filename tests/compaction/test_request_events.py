"""The event of a summary request stands before the request; where it cannot, nothing is sent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from everfold.agent.errors import AgentError
from everfold.agent.requests import rebuild_request
from everfold.host.access import HostedSession
from everfold.llm.retrying import RetryPolicy
from everfold.llm.route import Capabilities, LlmRequest
from everfold.plugins.waterfalls import PreStepAnswer, Waterfalls
from everfold.projections.compaction.engine import Compactor
from everfold.projections.compaction.errors import (
    CompactionChangedError,
    CompactionPersistenceError,
    CompactionSummaryError,
    SummaryRequestError,
)
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.retrying import Patience
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.image_offload.decisions import omit
from everfold.routes.scripted import fails, says
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.compaction.kit import (
    SUMMARY,
    TOOLS,
    StrictRoute,
    compact,
    compacted,
    prompted,
    run,
    turn,
)
from tests.compaction.mounting import agent, mounted
from tests.domain.kit import image, log, text, user
from tests.projections.kit import again, hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1), *turn(2), *turn(3))
END = len(TALK) - 1
LONG = log(
    *prompted(), *(row for n in range(40) for row in turn(n + 1, size=3800, images=[image(n)]))
)
OPENED = ["compaction/start", "compaction/request"]


def meanwhile(act: Callable[[], object]) -> Callable[[LlmRequest], Any]:
    """Return a reply before which something happens elsewhere."""

    def step(_request: LlmRequest) -> Any:
        act()
        return says("so far")

    return step


def refusing(nth: int, access: HostedSession) -> None:
    """Have the store fail when the nth request for a summary is to be logged."""
    seen: list[str] = []

    def refuse(_session: Session, events: Sequence[Recorded]) -> None:
        seen.extend(event.type for event in events if event.type == "compaction/request")
        if len(seen) == nth and events[-1].type == "compaction/request":
            raise StoreUnavailableError("the server is away")

    access.sessions.publications.append(refuse)


class Level(StrictRoute):
    """A route for which an omitted image costs as much as any."""

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> list[int]:
        return [50 for _ in images]


# Before it is sent.


def test_each_request_is_in_the_store_before_it_is_sent(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, stored = hosted(store, LONG), list[int]()

    def count(_request: LlmRequest) -> Any:
        stored.append(types_after(again(access), len(LONG) - 1).count("compaction/request"))
        return says(SUMMARY)

    compacted(access, a_route(count, count, count, window=32_000))

    assert stored == [1, 2, 3]


def test_a_store_that_fails_at_the_first_request_leaves_no_lock(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, TALK), a_route()
    refusing(1, access)

    with pytest.raises(CompactionPersistenceError, match="the server is away") as refused:
        compact(access, route)

    assert refused.value.code == "persistence"
    assert (route.requests, types_after(access, END)) == ([], [])


def test_a_store_that_fails_at_a_later_request_ends_the_compaction_before_it_is_sent(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, LONG), a_route(window=32_000)
    refusing(2, access)

    with pytest.raises(CompactionPersistenceError, match="the server is away"):
        compact(access, route)

    assert len(route.requests) == 1
    assert types_after(access, len(LONG) - 1) == [*OPENED, "compaction/end"]


def test_a_lock_that_is_freed_between_two_passes_ends_the_compaction_before_the_next(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    route = a_route(meanwhile(lambda: again(access).sessions.resume("s")), window=32_000)

    with pytest.raises(CompactionChangedError, match="ended by another process") as refused:
        compact(access, route)

    assert refused.value.code == "changed"
    assert len(route.requests) == 1
    assert types_after(access, len(LONG) - 1) == [*OPENED, "session/end-seed"]


def test_a_history_that_changes_between_two_passes_ends_the_compaction_before_the_next(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    route = a_route(meanwhile(lambda: omit(again(access), {3: [0]})), window=32_000)

    with pytest.raises(CompactionChangedError):
        compact(access, route)

    assert len(route.requests) == 1


def test_a_change_that_costs_nothing_between_two_passes_is_seen_by_the_next(
    store: SessionStore,
) -> None:
    """What is sent is what the log shows then, not what was looked at before."""
    access = hosted(store, LONG)
    takes = Capabilities(user_images=True, context_window=32_000)
    step = meanwhile(lambda: omit(again(access), {119: [0]}))
    route = Level([step], otherwise=says(SUMMARY), takes=takes)

    compacted(access, route)

    assert ["offloaded" in str(request.messages) for request in route.requests] == [
        False,
        False,
        True,
    ]
    assert "image/offload" in types_after(access, len(LONG) - 1)


def test_what_others_store_between_two_passes_is_no_part_of_the_next(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    other = again(access)
    header = {"header": {"config": {"provider": "scripted", "model": "m"}, "tools": TOOLS}}

    def go_on() -> None:
        other.append([AppendEvent("request/header", {**header, "reason": "change"})])
        other.append([message("user/message", user("later", text("and now?")))])

    route = a_route(meanwhile(go_on), window=32_000)
    compacted(access, route)

    assert len(route.requests) == 3
    assert "later" not in str([request.messages for request in route.requests])
    assert [request.header.get("tools") for request in route.requests] == [None] * 3


def test_after_a_lost_race_the_request_is_made_of_the_new_history(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, TALK), a_route()
    other, lost = again(access), list[str]()

    def race(_session: Session, events: Sequence[Recorded]) -> None:
        if not lost and events[0].type == "compaction/start":
            lost.append(events[1].data["compactionId"])
            path = {"provider": "scripted", "model": "m", "accessPath": "/files/{digest}"}
            other.append([AppendEvent("request/context", path)])

    access.sessions.publications.append(race)

    outcome = compacted(access, route)

    assert lost != [outcome.compaction_id]
    assert types_after(access, END)[:3] == ["request/context", *OPENED]
    assert [request.access_path for request in route.requests] == ["/files/{digest}"]


def test_a_compaction_for_which_nothing_fits_into_a_request_takes_no_lock(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, TALK), a_route(window=240)

    with pytest.raises(CompactionSummaryError, match="choose one with a larger context window"):
        compact(access, route)

    assert (route.requests, types_after(access, END)) == ([], [])


def test_one_that_comes_by_itself_says_so_in_the_log(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, TALK), a_route(takes=Capabilities(context_window=240))

    result = run(agent(mounted(access.sessions, route), "s").ask("and now?"))

    assert result.kind == "completed"
    (skipped,) = (e for e in access.sessions.log("s") if e.type == "compaction/skipped")
    assert "choose one with a larger context window" in skipped.data["reason"]


# A retry.


def patient(route: StrictRoute) -> Compactor:
    """Return an engine that sends requests again at once."""
    patience = Patience(RetryPolicy(max_retries=2))
    return Compactor(lambda _provider: route, CompactionSettings(), Waterfalls(), patience)


def test_a_retry_is_rebuilt_as_the_request_that_it_sends_again(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    script = [fails("SERVER"), says("one"), fails("SERVER"), fails("SERVER"), says("two")]
    route = a_route(*script, window=32_000)

    run(patient(route).compact(access, CompactionWish()))

    told = [e for e in access.sessions.log("s", first=len(LONG) + 1) if "re" in e.type[11:13]]
    assert [event.type.removeprefix("compaction/") for event in told] == [
        "request",
        "retry",
        "request",
        "retry",
        "retry",
        "request",
    ]
    reader = again(access).sessions
    assert [rebuild_request(reader, "s", event.seq) for event in told] == route.requests


def test_a_retry_sends_the_same_though_the_history_has_another_look_by_then(
    store: SessionStore,
) -> None:
    access = hosted(store, LONG)
    again_later = meanwhile(lambda: omit(again(access), {3: [0]}))

    def failing(request: LlmRequest) -> Any:
        again_later(request)
        return fails("SERVER")

    route = Level([failing], otherwise=says(SUMMARY))
    run(patient(route).compact(access, CompactionWish()))

    first, second = route.requests
    assert first == second
    assert "offloaded" not in str(second.messages)


# Turns beside it.


def test_a_turn_that_asks_while_a_summary_is_asked_for_names_a_seq_of_its_own(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """Both are dispatched when the same event is the last one."""
    access, route = hosted(store, TALK), a_route(says("hello"), says("yes"))
    host = mounted(access.sessions, route)
    talking = agent(host, "s")
    run(talking.ask("hi"))

    async def beside(_question: Any, ask_next: Any) -> PreStepAnswer:
        answer: PreStepAnswer = await ask_next()
        appended(again(access), STARTED, ("compaction/request", WHOLE), ("compaction/retry", NAME))
        return answer

    host.waterfalls.pre_step.register("beside", beside)
    run(talking.ask("and now?"))

    *_, answer = (e for e in access.sessions.log("s") if e.type == "assistant/message")
    named = int(str(answer.envelope()["correlationId"]).removeprefix("request:"))
    assert types_after(access, named)[:4] == [*OPENED, "compaction/retry", "assistant/message"]
    assert rebuild_request(again(access).sessions, "s", named) == route.requests[1]


# What cannot be rebuilt.


def appended(access: HostedSession, *events: tuple[str, Json]) -> int:
    """Store events, and return the last one's seq."""
    wishes = [
        AppendEvent(type_, data, None if type_.endswith("start") else {"ignorable": True})
        for type_, data in events
    ]
    return access.append(wishes)[-1].seq


NAME = {"compactionId": "k"}
STARTED = ("compaction/start", {**NAME, "turn": None})


@pytest.mark.parametrize("events", [[STARTED], [STARTED, ("compaction/retry", NAME)]])
def test_a_log_from_before_says_that_it_does_not_hold_what_was_asked(
    store: SessionStore, events: list[tuple[str, Json]]
) -> None:
    access = hosted(store, TALK)
    seq = appended(access, *events)

    with pytest.raises(
        AgentError, match="written before there was `compaction/request`"
    ) as refused:
        rebuild_request(access.sessions, "s", seq)

    assert refused.value.seq == seq


def test_a_start_points_to_the_request_that_follows(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    compacted(access, a_route())

    with pytest.raises(AgentError, match=f"summary is the one at seq {END + 2}"):
        rebuild_request(access.sessions, "s", END + 1)


WHOLE = {
    **NAME,
    "pass": 1,
    "config": {"provider": "scripted", "model": "m"},
    "withPrompt": True,
    "withTools": False,
    "range": {"start": 3, "end": 8},
    "instruction": "Sum up.",
}
DAMAGED: Mapping[str, tuple[Json, str]] = {
    "nothing": ({}, "data.compactionId is missing"),
    "no object": ("x", "data is no object"),
    "a text for a number": ({**WHOLE, "pass": "1"}, "data.pass is no int"),
    "a truth for a number": (
        {**WHOLE, "range": {"start": True, "end": 8}},
        "range.start is no int",
    ),
    "a later field": ({**WHOLE, "voice": "deep"}, "data.voice is not known"),
    "a node of none": ({**WHOLE, "range": {"start": 3, "end": 9}}, "3 to 9 are not shown"),
    "a text for all": ({**WHOLE, "shortened": "all"}, "data.shortened is no int"),
    "the wrong order": ({**WHOLE, "range": {"start": 8, "end": 3}}, "8 to 3 are not shown"),
}


@pytest.mark.parametrize(("data", "reason"), DAMAGED.values(), ids=DAMAGED.keys())
def test_an_event_that_does_not_say_what_was_sent_is_refused_with_the_reason(
    store: SessionStore, data: Json, reason: str
) -> None:
    """It may come with a file; it hinders nothing else."""
    access = hosted(store, TALK)
    before = shown(access)
    seq = appended(access, ("compaction/request", data))

    with pytest.raises(SummaryRequestError, match=reason) as refused:
        rebuild_request(access.sessions, "s", seq)

    assert refused.value.code == "summary-request"
    assert refused.value.seq == seq
    assert shown(again(access)) == before


def test_a_prompt_that_is_not_there_is_missed(store: SessionStore) -> None:
    access = hosted(store, log(*turn(1)))
    seq = appended(access, ("compaction/request", {**WHOLE, "range": {"start": 1, "end": 2}}))

    with pytest.raises(SummaryRequestError, match="no prompt at the head"):
        rebuild_request(access.sessions, "s", seq)
