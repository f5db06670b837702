"""Summary requests that fail for reasons that may pass are sent again within the policy of the host."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from everfold.host.pausing import pause
from everfold.llm.failure import FailureCode
from everfold.llm.retrying import RetryPolicy
from everfold.plugins.waterfalls import Cancellation, SummaryErrorQuestion, Waterfalls
from everfold.projections.compaction.engine import Compacted, Compactor
from everfold.projections.compaction.errors import (
    CompactionCancelledError,
    CompactionChangedError,
    CompactionPersistenceError,
    CompactionSummaryError,
)
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.retrying import Patience
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.image_offload.recovery import recover_summary
from everfold.routes.scripted import fails, says
from everfold.session.errors import StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.compaction.kit import StrictRoute, compacted, prompted, run, turn
from tests.domain.kit import image, log
from tests.projections.kit import again, hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1, images=[image(1)]), *turn(2), *turn(3))
END = len(TALK) - 1
LONG = log(*prompted(), *(row for n in range(40) for row in turn(n + 1, size=3800)))
POLICY = RetryPolicy(max_retries=2, base_ms=100)
DONE = ["compaction/summary", "user/message", "compaction/end"]


@dataclass
class Pauses:
    """A pause that does not wait, and knows how long it was to be.

    Attributes:
        during: what happens in it.
    """

    during: Callable[[], object] = lambda: None
    asked: list[int] = field(default_factory=list)

    async def __call__(self, delay_ms: int, cancellation: Cancellation) -> None:
        self.asked.append(delay_ms)
        self.during()


class Flag:
    """A cancellation that can be asked for."""

    is_set = False


def patient(route: StrictRoute, pauses: Pauses | None = None, **policy: int) -> Compactor:
    """Return an engine whose host retries; the images plugin is there."""
    chains = Waterfalls()
    chains.summary_error.register("image-offload", recover_summary)
    chosen = RetryPolicy(**policy) if policy else POLICY
    patience = Patience(chosen, Pauses() if pauses is None else pauses)
    return Compactor(lambda _provider: route, CompactionSettings(), chains, patience)


def compact(engine: Compactor, access: Any, **wish: Any) -> Compacted:
    """Have a session summarised."""
    outcome = run(engine.compact(access, CompactionWish(**wish)))
    assert isinstance(outcome, Compacted)
    return outcome


PASSING = (
    "RATE_LIMIT",
    "TIMEOUT",
    "FIRST_CHUNK_TIMEOUT",
    "SERVER",
    "TRANSPORT",
    "EMPTY_RESPONSE",
    "MALFORMED_RESPONSE",
)


@pytest.mark.parametrize("code", PASSING)
def test_a_failure_that_may_pass_is_met_by_the_same_request(
    store: SessionStore, a_route: RouteMaker, code: str
) -> None:
    access, route, pauses = hosted(store, TALK), a_route(fails(code, "not now")), Pauses()

    outcome = compact(patient(route, pauses), access)

    assert outcome.passes == 1
    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "compaction/retry",
        *DONE,
    ]
    first, second = route.requests
    assert first == second
    assert pauses.asked == [50]


def test_an_answer_that_holds_nothing_is_asked_for_again(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    compact(patient(a_route(says(""))), access)

    (retry,) = access.sessions.log("s", first=END + 3, last=END + 3)
    assert retry.data["failure"] == {"code": "EMPTY_RESPONSE", "message": "the answer is empty"}


def test_each_retry_is_logged_before_its_pause(store: SessionStore, a_route: RouteMaker) -> None:
    access, seen = hosted(store, TALK), []
    pauses = Pauses(lambda: seen.append(types_after(access, END)[-1]))

    compact(patient(a_route(fails("SERVER", "down"), fails("SERVER")), pauses), access)

    start, _, one, two, *_ = access.sessions.log("s", first=END + 1)
    assert seen == ["compaction/retry"] * 2
    assert one.data == {
        "compactionId": start.data["compactionId"],
        "provider": "scripted",
        "retry": 1,
        "maxRetries": 2,
        "delayMs": 50,
        "failure": {"message": "down", "code": "SERVER"},
    }
    assert (two.data["retry"], two.data["delayMs"], one.ignorable) == (2, 100, True)


def test_it_is_given_up_when_the_budget_is_spent(store: SessionStore, a_route: RouteMaker) -> None:
    access, route = hosted(store, TALK), a_route()
    route.otherwise = fails("SERVER", "it burns")
    before = shown(access)

    with pytest.raises(CompactionSummaryError, match=r"it burns \(SERVER\)"):
        compact(patient(route), access)

    assert len(route.sent) == 3
    retries = ["compaction/retry"] * 2
    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        *retries,
        "compaction/end",
    ]
    assert shown(access) == shown(again(access)) == before


@pytest.mark.parametrize("code", sorted({*FailureCode} - {*PASSING, "CONTEXT_WINDOW_EXCEEDED"}))
def test_a_failure_that_will_not_pass_is_not_repeated(
    store: SessionStore, a_route: RouteMaker, code: str
) -> None:
    access, route = hosted(store, TALK), a_route(fails(code))

    with pytest.raises((CompactionSummaryError, CompactionCancelledError)):
        compact(patient(route), access)

    assert len(route.sent) == 1
    assert types_after(access, END) == ["compaction/start", "compaction/request", "compaction/end"]


def test_the_wait_that_a_provider_asks_for_is_honoured(
    store: SessionStore, a_route: RouteMaker
) -> None:
    pauses = Pauses()
    route = a_route(fails("RATE_LIMIT", retry_after_ms=7_000))

    compact(patient(route, pauses), hosted(store, TALK))

    assert pauses.asked == [7_000]


def test_a_wait_beyond_our_patience_ends_the_compaction(
    store: SessionStore, a_route: RouteMaker
) -> None:
    pauses = Pauses()
    route = a_route(fails("RATE_LIMIT", retry_after_ms=200_000))

    with pytest.raises(CompactionSummaryError) as refused:
        compact(patient(route, pauses), hosted(store, TALK))

    assert pauses.asked == []
    assert refused.value.failure is not None
    assert refused.value.failure.provider_retry_after_ms == 200_000


def test_each_pass_has_a_budget_and_passes_that_are_done_are_not_asked_again(
    store: SessionStore, a_route: RouteMaker
) -> None:
    flaky = [fails("SERVER"), fails("SERVER")]
    script = [*flaky, says("one"), *flaky, says("two"), *flaky, says("three")]
    route = a_route(*script, window=32_000)

    outcome = compact(patient(route), hosted(store, LONG))

    assert (outcome.passes, len(route.sent)) == (3, 9)
    carried = [request.messages[1]["content"][-2:][0].get("text") for request in route.requests]
    assert carried[3:6] == ["one"] * 3
    assert carried[6:] == ["two"] * 3


def test_a_recovery_spends_no_retry_and_gives_none_back(
    store: SessionStore, a_route: RouteMaker
) -> None:
    needs_one = fails(FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=1)
    access = hosted(store, TALK)
    route = a_route(fails("SERVER"), needs_one, fails("SERVER"), says("short"))

    compact(patient(route), access)

    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "compaction/retry",
        "image/offload",
        "compaction/request",
        "compaction/retry",
        *DONE,
    ]
    assert [row.data["retry"] for row in rows(access, "compaction/retry")] == [1, 2]


def rows(access: Any, type_: str) -> list[Recorded]:
    """Return the log's events of one type."""
    return [event for event in access.sessions.log("s") if event.type == type_]


def test_whoever_recovers_is_asked_before_anything_is_repeated(
    store: SessionStore, a_route: RouteMaker
) -> None:
    asked: list[str] = []
    engine = patient(a_route(fails("SERVER"), fails("SERVER")))

    def note(question: SummaryErrorQuestion, ask_next: Callable[[], bool]) -> bool:
        asked.append(str(question.error))
        return ask_next()

    engine.waterfalls.summary_error.register("noting", note)

    compact(engine, hosted(store, TALK))

    assert asked == ["SERVER: scripted failure"] * 2


def test_a_host_that_lends_no_patience_repeats_nothing(
    store: SessionStore, a_route: RouteMaker
) -> None:
    route = a_route(fails("SERVER"))

    with pytest.raises(CompactionSummaryError):
        compact(Compactor(lambda _provider: route), hosted(store, TALK))

    assert len(route.sent) == 1


# What happens in a pause.


def test_a_cancellation_in_the_pause_is_seen_before_the_next_request(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, flag, route = hosted(store, TALK), Flag(), a_route(fails("SERVER"))
    before = shown(access)

    with pytest.raises(CompactionCancelledError):
        compact(
            patient(route, Pauses(lambda: setattr(flag, "is_set", True))), access, cancellation=flag
        )

    assert len(route.sent) == 1
    *_, end = access.sessions.log("s")
    assert end.data["error"] == "the compaction was cancelled; older messages are in place"
    assert shown(access) == before
    assert compacted(access, a_route()).hidden


def test_a_real_pause_ends_when_somebody_asks_to_stop(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """The provider asks for a minute, which the test does not take."""
    access, flag = hosted(store, TALK), Flag()
    route = a_route(fails("RATE_LIMIT", retry_after_ms=59_000))
    patience = Patience(POLICY, pause)
    engine = Compactor(lambda _provider: route, CompactionSettings(), Waterfalls(), patience)

    async def work() -> None:
        wish = CompactionWish(cancellation=flag)
        task = asyncio.create_task(engine.compact(access, wish))
        while "compaction/retry" not in types_after(access, END):
            await asyncio.sleep(0.01)
        flag.is_set = True
        with pytest.raises(CompactionCancelledError):
            await asyncio.wait_for(task, 30)

    run(work())

    assert types_after(access, END)[-1] == "compaction/end"


def test_a_task_that_is_cancelled_in_the_pause_frees_the_lock(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    before = shown(access)
    route = a_route(fails("RATE_LIMIT", retry_after_ms=59_000))
    patience = Patience(POLICY, pause)
    engine = Compactor(lambda _provider: route, CompactionSettings(), Waterfalls(), patience)

    async def work() -> None:
        task = asyncio.create_task(engine.compact(access, CompactionWish()))
        while "compaction/retry" not in types_after(access, END):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())

    *_, end = access.sessions.log("s")
    assert (end.type, end.data["error"]) == ("compaction/end", "cancelled")
    assert shown(access) == before
    assert compacted(access, a_route()).hidden


def test_a_lock_that_was_freed_meanwhile_ends_the_retries(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    def freed(_request: object) -> Any:
        again(access).sessions.resume("s")
        return fails("SERVER")

    route = a_route(freed)

    with pytest.raises(CompactionChangedError, match="was ended by another process"):
        compact(patient(route), access)

    assert len(route.sent) == 1
    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "session/end-seed",
    ]


def test_a_retry_that_cannot_be_logged_is_not_made(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route, pauses = hosted(store, TALK), a_route(fails("SERVER")), Pauses()

    def refuse(_session: Session, events: Any) -> None:
        if events[0].type == "compaction/retry":
            raise StoreUnavailableError("the server is away")

    access.sessions.publications.append(refuse)

    with pytest.raises(CompactionPersistenceError, match="the server is away"):
        compact(patient(route, pauses), access)

    assert (len(route.sent), pauses.asked) == (1, [])
    assert types_after(access, END) == ["compaction/start", "compaction/request", "compaction/end"]


def test_what_others_store_in_the_pause_is_kept_and_the_summary_made(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    pauses = Pauses(lambda: again(access).sessions.append("s", "todo/write", {"todos": []}))

    compact(patient(a_route(fails("SERVER")), pauses), access)

    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "compaction/retry",
        "todo/write",
        *DONE,
    ]
