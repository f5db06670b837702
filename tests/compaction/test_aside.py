"""No plugin's work with the store holds up an event loop in which other sessions are served."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from everfold.host.access import HostedSession
from everfold.host.sessions import Sessions
from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode
from everfold.llm.route import Capabilities
from everfold.projections.catalog import detached_composition
from everfold.projections.compaction.engine import Compacted
from everfold.projections.compaction.job import CompactionWish
from everfold.routes.scripted import calls, echo, fails, says
from everfold.session.ports import SessionStore
from tests.compaction.kit import StrictRoute, compactor, prompted, run, turn
from tests.compaction.mounting import agent, mounted
from tests.domain.kit import image, log
from tests.projections.kit import hosted

RouteMaker = Callable[..., StrictRoute]
LONG = log(*prompted(), *(row for n in range(40) for row in turn(n + 1, size=3800)))
PICTURES = log(*prompted(), *(row for n in range(6) for row in turn(n + 1, images=[image(n)])))


class Minding:
    """A store that notes which of its methods are called in an event loop's own thread."""

    def __init__(self, store: SessionStore) -> None:
        self._store, self.in_loop = store, set[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def called(*given: Any, **named: Any) -> Any:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return found(*given, **named)
            self.in_loop.add(name)
            return found(*given, **named)

        return called


def minding(access: HostedSession) -> tuple[Minding, Sessions]:
    """Return a host with nothing in memory, and what it notes of its store."""
    minded = Minding(access.sessions.store)
    return minded, Sessions(cast(SessionStore, minded), detached_composition())


def answered(request: Any) -> Any:
    """Summarise when asked to, else answer the user."""
    asked = request.messages[-1]["source"].get("plugin") == "compact"
    return says("they talked about letters") if asked else echo(request)


@pytest.mark.parametrize("window", [32_000, None], ids=["pressure", "overflow"])
def test_a_compaction_in_a_turn_asks_the_store_beside_the_event_loop(
    store: SessionStore, a_route: RouteMaker, window: int | None
) -> None:
    minded, sessions = minding(hosted(store, LONG))
    route = a_route(takes=Capabilities(user_images=True, context_window=window))
    route.window, route.otherwise = window or 50_000, answered

    result = run(agent(mounted(sessions, route), "s").ask("and now?"))

    assert "You said 'and now?'" in result.text
    assert "compaction/summary" in [event.type for event in sessions.log("s")]
    assert minded.in_loop == set()


@pytest.mark.parametrize("plans_ahead", [True, False])
def test_an_omission_in_a_turn_asks_the_store_beside_the_event_loop(
    store: SessionStore, a_route: RouteMaker, plans_ahead: bool
) -> None:
    minded, sessions = minding(hosted(store, PICTURES))
    route = a_route(takes=Capabilities(user_images=True, budget=ImageBudget(max_images=3)))
    route.otherwise = answered
    host = mounted(sessions, route, image_offload={"plan_ahead": plans_ahead})

    run(agent(host, "s").ask("look"))

    assert "image/offload" in [event.type for event in sessions.log("s")]
    assert minded.in_loop == set()


def test_shortening_a_result_in_a_turn_asks_the_store_beside_the_event_loop(
    store: SessionStore, a_route: RouteMaker
) -> None:
    def read() -> str:
        """Read much."""
        return "r" * 200_000

    minded, sessions = minding(hosted(store, log(*prompted())))
    route = a_route(calls(("c", "read", {})), says("read"), says("again"))
    pruner: dict[str, object] = {"min_saving": 10}
    host = mounted(sessions, route, tool_result_pruner=pruner)
    talking = agent(host, "s", tools=[read])

    run(talking.ask("read"))
    run(talking.ask("and?"))

    assert "compaction/prune" in [event.type for event in sessions.log("s")]
    assert minded.in_loop == set()


def test_a_summary_whose_request_fails_asks_the_store_beside_the_event_loop(
    store: SessionStore, a_route: RouteMaker
) -> None:
    minded, sessions = minding(hosted(store, LONG))
    route = a_route(fails(FailureCode.CONTEXT_WINDOW_EXCEEDED))
    access = HostedSession(sessions, "s")

    outcome = run(compactor(route).compact(access, CompactionWish()))

    assert isinstance(outcome, Compacted)
    assert minded.in_loop == set()


def test_work_beside_the_event_loop_is_done_before_a_cancellation_goes_on(
    store: SessionStore,
) -> None:
    access = hosted(store, [])
    begun, may_end, done = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        assert may_end.wait(30)
        done.append("stored")

    async def cancelled() -> None:
        task = asyncio.create_task(access.aside(work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        done.append("cancelled")

    run(cancelled())

    assert done == ["stored", "cancelled"]


def test_what_work_beside_the_event_loop_raises_is_raised(store: SessionStore) -> None:
    def work() -> None:
        raise KeyError("no")

    with pytest.raises(KeyError):
        run(hosted(store, []).aside(work))
