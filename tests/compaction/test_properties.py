"""Any log can be summarised or says why not, and is sound afterwards: D3, D5, G6 of the field reports."""

from collections.abc import Callable
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from everfold.audit.auditing import audit
from everfold.projections.compaction.bracket import lock_of
from everfold.projections.compaction.engine import Compacted
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.tool_result_pruner.cutting import PruneLimits
from everfold.projections.tool_result_pruner.pruning import cuts, prune
from everfold.routes.scripted import says
from everfold.session.deciding import AppendEvent
from everfold.session.ports import SessionStore
from tests.compaction.kit import (
    TOOLS,
    StrictRoute,
    compacted,
    compactor,
    metered,
    pairing_faults,
    prompted,
    run,
    summarising,
    turn,
)
from tests.domain.kit import log, text, user, wishes_of
from tests.domain.logs import logs
from tests.domain.model import Log
from tests.projections.kit import again, hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
NUMBERS = count()
unforked = logs().filter(lambda log: not log.is_seeded)


@given(log=unforked, keep_tokens=st.integers(0, 300), is_manual=st.booleans())
def test_any_log_is_summarised_or_says_why_not(
    store: SessionStore, log: Log, keep_tokens: int, is_manual: bool
) -> None:
    access = hosted(store, log.records, f"any-{next(NUMBERS)}")
    if lock_of(access.view()) is not None:
        access.append([AppendEvent("session/end-seed", {})])
    engine = compactor(
        summarising(says("s"), takes=StrictRoute().takes),
        keep_tokens=keep_tokens,
        min_span_tokens=100,
    )
    wish = CompactionWish("manual" if is_manual else "pressure", provider="scripted", model="m")
    before = shown(access)

    outcome = run(engine.compact(access, wish))

    report = audit(access.sessions, access.session_id)
    assert report.findings == ()
    assert report.is_sound
    if isinstance(outcome, Compacted):
        kept = [pair for pair in before if pair[0] not in outcome.hidden]
        assert [pair for pair in shown(access) if pair[0] != outcome.seq] == kept
        assert outcome.tokens_after < outcome.tokens_before
    else:
        assert shown(access) == before
        assert outcome.reason


@given(unforked)
def test_any_log_can_be_pruned(store: SessionStore, log: Log) -> None:
    limits = PruneLimits(threshold=100, head=0, tail=0)
    access = hosted(store, log.records, f"pruned-{next(NUMBERS)}")

    prune(access, [cut.seq for cut in cuts(access.view(), limits)], limits)

    assert audit(access.sessions, access.session_id).is_sound
    assert cuts(access.view(), limits) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=6))
def test_turns_with_compactions_between_keep_valid_pairs(
    store: SessionStore, plan: list[tuple[int, bool]]
) -> None:
    access = hosted(store, log(*prompted(tools=True)), f"turns-{next(NUMBERS)}")
    route = summarising()
    for number, (tools, compacts) in enumerate(plan):
        access.append(wishes_of(log(*turn(number + 1, tools=tools))))
        if compacts:
            run(compactor(route).compact(access, CompactionWish()))

    messages = [message for _, message in shown(access)]
    assert pairing_faults(messages, TOOLS) == []
    assert route.faults == []
    meter = metered(access)
    assert meter.state.total == meter.state.surface.fixed
    assert shown(again(access)) == shown(access)


def test_d3_the_whole_surface_is_covered_and_the_log_stays_complete(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """A host that keeps hardly anything in memory, and reads in small pages."""
    rows = [("user/message", user(f"u-{n}", text(f"message {n} " + "x" * 90))) for n in range(100)]
    access = hosted(store, log(*prompted(), *rows))
    access.sessions.snapshot("s")
    before = list(access.sessions.log("s"))

    outcome = compacted(again(access), a_route())

    assert len(outcome.hidden) == 99
    assert list(access.sessions.log("s", last=101)) == before
    assert shown(access)[-1][1]["id"] == "u-99"


def test_g6_a_second_compaction_of_a_long_log_writes_five_rows(
    store: SessionStore, a_route: RouteMaker
) -> None:
    notes: list[Any] = [("todo/write", {"todos": []})] * 19_000
    talk: list[Any] = [row for n in range(100) for row in turn(n + 1)]
    access = hosted(store, log(*prompted(), *talk, *notes))
    compacted(access, a_route())
    access.append(wishes_of(log(*turn(900), *turn(901))))
    last = access.view().next_seq - 1

    outcome = compacted(access, a_route())

    assert len(types_after(access, last)) == 5
    assert len(outcome.hidden) == 5
