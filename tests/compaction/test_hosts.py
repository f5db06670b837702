"""Compaction on both databases, and from programs without an event loop."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everfold.audit.auditing import audit
from everfold.host.compacting import compact_now
from everfold.host.read_models import ReadModelRunner
from everfold.llm.route import LlmRequest
from everfold.projections.compaction.engine import Compacted
from everfold.projections.compaction.errors import CompactionBusyError, CompactionError
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.read_models.shipped import shipped_models
from everfold.routes.scripted import says
from everfold.session.deciding import AppendEvent, message
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.compaction.kit import (
    SUMMARY,
    StrictRoute,
    compact,
    compacted,
    compactor,
    prompted,
    run_meanwhile,
    turn,
)
from tests.domain.kit import log, text, user
from tests.projections.kit import again, hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1), *turn(2))
END = len(TALK) - 1


@pytest.fixture
def any_store(store_url: str) -> Iterator[SessionStore]:
    """An empty store of each kind."""
    with open_store(store_url) as opened:
        yield opened


def test_b2_on_each_database_two_hosts_write_and_nothing_is_lost(
    any_store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(any_store, TALK)
    other = again(access)

    def meanwhile(request: LlmRequest) -> Any:
        other.append([AppendEvent("turn/start", {"turn": 3})])
        with pytest.raises(CompactionBusyError):
            _advance(other)
        other.append([message("user/message", user("u-9", text("and now?")))])
        return says(SUMMARY)

    outcome = compacted(access, a_route(meanwhile))

    assert [seq for seq, _ in shown(other)] == [0, outcome.seq, 7, 8, END + 4]
    assert audit(access.sessions, "s").is_sound
    pressure = ReadModelRunner(other.sessions, shipped_models()).read("s", "context-pressure")
    breakdown = ReadModelRunner(other.sessions, shipped_models()).read("s", "context-breakdown")
    assert pressure["tokens"] == breakdown["totalTokens"]


def _advance(access: Any) -> None:
    """Try a second compaction."""
    run_meanwhile(compactor(StrictRoute()).compact(access, CompactionWish()))


def test_a_program_without_an_event_loop_compacts(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)

    outcome = compact_now(access, {"scripted": a_route()}, CompactionWish())

    assert isinstance(outcome, Compacted)
    assert outcome.hidden == (3, 4)


def test_a_program_without_an_event_loop_leaves_no_connection_open(
    store: SessionStore,
) -> None:
    closed: list[bool] = []

    class Connected(StrictRoute):
        async def close(self) -> None:
            closed.append(True)

    route = Connected([says(SUMMARY)])
    compact_now(hosted(store, TALK), {"scripted": route}, CompactionWish())

    assert (route.faults, closed) == ([], [True])


def test_a_provider_without_a_route_is_named(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)

    with pytest.raises(CompactionError, match="no route to provider 'scripted'; routes: other"):
        compact_now(access, {"other": a_route()}, CompactionWish())

    assert types_after(access, END) == []


def test_ctrl_c_frees_the_lock_and_goes_on(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)

    def interrupt(request: LlmRequest) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compact_now(access, {"scripted": a_route(interrupt)}, CompactionWish())

    *_, end = access.sessions.log("s")
    assert (end.type, end.data["error"]) == ("compaction/end", "cancelled")
    assert isinstance(compact(access, a_route()), Compacted)
