"""Summaries that are refused, and failures by code: R283, R284, R288, R289, and D7 of the field reports."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from everfold.llm.assembly import Answer
from everfold.llm.chunks import BlockEnd, Finish, TextDelta, Usage
from everfold.llm.failure import FailureCode, LlmFailure
from everfold.projections.compaction.answers import together, usable
from everfold.projections.compaction.errors import (
    CompactionCancelledError,
    CompactionCommitError,
    CompactionError,
    CompactionPersistenceError,
    CompactionSummaryError,
)
from everfold.projections.compaction.job import CompactionWish
from everfold.routes.scripted import Reply, calls, fails, hangs, says
from everfold.session.errors import AppendVetoedError, StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.compaction.kit import (
    StrictRoute,
    compact,
    compacted,
    compactor,
    empty_reply,
    prompted,
    run,
    turn,
)
from tests.domain.kit import image, log
from tests.projections.kit import hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1), *turn(2))
END = len(TALK) - 1
STOP = Finish("stop")
TEXT = {"type": "text", "text": "so far so good"}
REASONING = {"type": "reasoning", "text": "hm"}

UNUSABLE: dict[str, Reply] = {
    "empty": says(""),
    "blank": says("  \n"),
    "only reasoning": empty_reply(BlockEnd(0, REASONING), STOP),
    "only a tool call": calls(("c", "read", {})),
    "cut off by the limit": says("half a summ", finish="max-tokens"),
    "an error": fails(FailureCode.SERVER, "it burns"),
    "an image": empty_reply(BlockEnd(0, TEXT), BlockEnd(1, image(1)), STOP),
    "broken off": empty_reply(TextDelta(0, "half")),
    "nothing at all": empty_reply(STOP),
    "longer than what it stands for": says("s" * 4000),
}


@pytest.mark.parametrize("reply", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_d7_an_unusable_summary_changes_nothing_and_is_a_logged_failure(
    store: SessionStore, a_route: RouteMaker, reply: Reply
) -> None:
    access = hosted(store, TALK)
    before = shown(access)

    with pytest.raises(CompactionSummaryError) as refused:
        compact(access, a_route(reply))

    assert refused.value.code == "summary"
    assert shown(access) == before
    assert types_after(access, END) == ["compaction/start", "compaction/request", "compaction/end"]
    *_, end = access.sessions.log("s")
    assert end.data["error"] == str(refused.value)


@pytest.mark.parametrize("reply", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_d7_the_next_attempt_works(store: SessionStore, a_route: RouteMaker, reply: Reply) -> None:
    access = hosted(store, TALK)
    route = a_route(reply)
    with pytest.raises(CompactionError):
        compact(access, route)

    assert compacted(access, route).hidden == (3, 4)


def test_r283_a_summary_must_be_cheaper_and_equal_is_not_enough(
    store: SessionStore, a_route: RouteMaker
) -> None:
    probe = compacted(hosted(store, TALK, "probe"), a_route())
    frame = probe.tokens_after - -(-len("They want a boat; it is to be blue.") // 4)
    equal = says("s" * 4 * (probe.tokens_before - frame))
    less = says("s" * 4 * (probe.tokens_before - frame - 1))

    with pytest.raises(CompactionSummaryError, match="the messages themselves"):
        compact(hosted(store, TALK, "equal"), a_route(equal))

    assert compacted(hosted(store, TALK, "less"), a_route(less)).tokens_after == (
        probe.tokens_before - 1
    )


def test_r284_other_blocks_than_text_are_dropped_from_the_summary_but_logged(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    reply = empty_reply(BlockEnd(0, REASONING), BlockEnd(1, TEXT), STOP)

    compacted(access, a_route(reply))

    (summary,) = access.sessions.log("s", first=END + 3, last=END + 3)
    assert summary.data["summary"] == [TEXT]
    assert summary.data["rawOutput"] == [REASONING, TEXT]


def test_r289_the_providers_failure_is_kept_with_its_facts(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    with pytest.raises(CompactionSummaryError) as refused:
        compact(access, a_route(fails(FailureCode.RATE_LIMIT, "slow down", retry_after_ms=7000)))

    assert refused.value.failure == LlmFailure(
        "slow down", FailureCode.RATE_LIMIT, provider_retry_after_ms=7000
    )


class Stopped:
    """A cancellation that is asked for after so many looks at it."""

    def __init__(self, looks: int) -> None:
        self._looks = looks

    @property
    def is_set(self) -> bool:
        self._looks -= 1
        return self._looks < 0


@pytest.mark.parametrize("looks", range(6))
def test_r288_cancelled_at_any_point_frees_the_lock(
    store: SessionStore, a_route: RouteMaker, looks: int
) -> None:
    access = hosted(store, TALK)
    before = shown(access)

    with pytest.raises(CompactionCancelledError) as refused:
        compact(access, a_route(), cancellation=Stopped(looks))

    assert refused.value.code == "cancelled"
    assert shown(access) == before
    assert types_after(access, END) == ["compaction/start", "compaction/request", "compaction/end"]


def test_r288_a_refused_batch_is_a_commit_failure(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)

    def veto(session: Session, events: Sequence[Recorded]) -> None:
        if events[0].type == "compaction/summary":
            raise AppendVetoedError("not this one")

    access.sessions.publications.append(veto)

    with pytest.raises(CompactionCommitError, match="not this one") as refused:
        compact(access, a_route())

    assert refused.value.code == "commit"
    assert types_after(access, END) == ["compaction/start", "compaction/request", "compaction/end"]


def test_r288_a_store_that_fails_is_a_persistence_failure(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    def lose(session: Session, events: Sequence[Recorded]) -> None:
        if events[0].type != "compaction/start":
            raise StoreUnavailableError("the server is gone")

    access.sessions.publications.append(lose)

    with pytest.raises(CompactionPersistenceError, match="the server is gone") as refused:
        compact(access, a_route())

    assert refused.value.code == "persistence"
    assert "resuming the session frees it" in refused.value.__notes__[0]
    assert types_after(access, END) == ["compaction/start", "compaction/request"]


def test_an_aborted_answer_is_a_failed_request(store: SessionStore, a_route: RouteMaker) -> None:
    gone = Finish("aborted", LlmFailure("stopped", FailureCode.CANCELLED))

    with pytest.raises(CompactionCancelledError):
        compact(hosted(store, TALK), a_route(empty_reply(gone)))


def test_a_session_that_asked_no_model_needs_one_to_be_named(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, log(*turn(1), *turn(2)))

    with pytest.raises(CompactionError, match="has asked no model yet"):
        compact(access, a_route())

    assert compacted(access, a_route(), provider="scripted", model="m").hidden == (1, 2)


def test_token_counts_of_passes_add_up() -> None:
    one, other = Usage(1, 2, cache_read_tokens=3), Usage(10, 20, total_tokens=30)

    assert together(one, other) == Usage(11, 22, total_tokens=30, cache_read_tokens=3)
    assert together(one, None) == together(None, one) == one


def test_an_answer_of_several_texts_is_used_whole() -> None:
    answer = Answer((TEXT, REASONING, TEXT), None, STOP, None, ())

    assert usable(answer).blocks == (TEXT, TEXT)


def test_a_summariser_that_hangs_is_stopped_by_cancelling_the_task(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    route = a_route(hangs(TextDelta(0, "so")))

    async def cancel_it() -> Any:
        task = asyncio.create_task(compactor(route).compact(access, CompactionWish()))
        while not route.sent:
            await asyncio.sleep(0)
        task.cancel()
        return await asyncio.wait({task})

    run(cancel_it())

    *_, end = access.sessions.log("s")
    assert (end.type, end.data["error"]) == ("compaction/end", "cancelled")
    assert compacted(access, a_route()).hidden == (3, 4)


def test_a_reason_that_is_no_unicode_still_frees_the_lock(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    with pytest.raises(CompactionSummaryError):
        compact(access, a_route(fails(FailureCode.SERVER, "half \ud83d" + "x" * 9000)))

    *_, end = access.sessions.log("s")
    assert end.type == "compaction/end"
    assert end.data["error"].startswith("the summary request failed: half \ufffd")
    assert len(end.data["error"]) == 2000
