"""Conversations to be summarised, routes that summarise them, and what a strict provider checks."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from everfold.host.access import HostedSession
from everfold.host.sessions import Sessions
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import Capabilities, LlmRequest, Prepared
from everfold.plugins.waterfalls import Waterfalls
from everfold.projections.catalog import detached_composition
from everfold.projections.compaction.engine import Compacted, Compactor, Outcome
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.token_meter.meter import Meter
from everfold.projections.token_meter.prices import message_price, tools_price
from everfold.routes.scripted import Reply, ScriptedRoute, Step, says
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from tests.domain.kit import assistant, system, text, tool_result, user
from tests.projections.kit import Never as Never
from tests.rebuilding import Rebuilding

T = TypeVar("T")

REBUILDING = Rebuilding(None)
"""Compares what the routes of these tests are asked; a fixture tells it the store of each test."""


@contextmanager
def comparing(stores: Sequence[SessionStore]) -> Iterator[None]:
    """Compare each request of the block with the one that the log alone gives.

    Args:
        stores: the one that is used; if there is none, nothing may be sent.
    """
    readers = [Sessions(each, detached_composition(), snapshot_every=0) for each in stores]
    REBUILDING.reader, REBUILDING.differences = next(iter(readers), None), []
    yield
    REBUILDING.reader = None
    assert REBUILDING.differences == []


PATIENCE_S = 60.0
HEADER: Mapping[str, Json] = {"config": {"provider": "scripted", "model": "m"}}
TOOLS = [{"name": "read", "description": "reads", "parameters": {"type": "object"}}]
SUMMARY = "They want a boat; it is to be blue."


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a fresh event loop."""

    async def bounded() -> T:
        return await asyncio.wait_for(work, PATIENCE_S)

    return asyncio.run(bounded())


def call(id_: str, name: str = "read") -> dict[str, str]:
    """Return a tool-call block."""
    return {"type": "tool-call", "id": id_, "name": name, "arguments": '{"path":"a"}'}


def prompted(tools: bool = False, **config: Json) -> list[Any]:
    """Return the beginning of a log: a prompt and the first request's header."""
    header = {"config": {**HEADER["config"], **config}, **({"tools": TOOLS} if tools else {})}
    return [
        ("system/message", system("s", text("be brief"))),
        ("request/header", {"header": header, "reason": "initial"}),
    ]


def turn(number: int, *, size: int = 400, tools: int = 0, images: Sequence[Json] = ()) -> list[Any]:
    """Return a finished turn: a user's message, exchanges with tools, an answer."""
    ids = [f"c-{number}-{at}" for at in range(tools)]
    exchanges = [
        ("assistant/message", assistant(f"a-{number}", *map(call, ids))),
        *(("tool/result", tool_result(id_, text("r" * size))) for id_ in ids),
    ]
    return [
        ("turn/start", {"turn": number}),
        ("user/message", user(f"u-{number}", text(f"q{number} " + "q" * size), *images)),
        *(exchanges if ids else []),
        ("assistant/message", assistant(f"b-{number}", text(f"a{number} " + "a" * size))),
        ("turn/end", {"turn": number, "reason": {"kind": "completed"}}),
    ]


def pricey(request: LlmRequest) -> int:
    """Return what a request costs by structural prices."""
    tools = tools_price(request.header.get("tools"))
    return tools + sum(message_price(message) for message in request.messages)


@dataclass(slots=True)
class StrictRoute(ScriptedRoute):
    """A scripted route that refuses what strict providers refuse.

    Attributes:
        window: tokens that it takes; more is a failure, with the code in `oversize`.
        faults: what it found wrong with requests; a fixture asserts that there is none.
    """

    window: int | None = None
    oversize: str = FailureCode.CONTEXT_WINDOW_EXCEEDED
    faults: list[str] = field(default_factory=list)
    refused: int = 0

    async def prepare(self, request: LlmRequest) -> Prepared:
        REBUILDING.check(request)
        self.faults.extend(pairing_faults(request.messages, request.header.get("tools")))
        prepared = await ScriptedRoute.prepare(self, request)
        if self.window is not None and pricey(request) > self.window:
            self.refused += 1
            raise LlmError(LlmFailure(f"{pricey(request)} tokens are too many", self.oversize))
        return prepared


def pairing_faults(messages: Sequence[Mapping[str, Any]], tools: Any) -> list[str]:
    """Return what a provider with strict pairing finds wrong with the tool blocks of a request."""
    faults: list[str] = []
    waiting: set[str] = set()
    for message in messages:
        blocks = [block for block in message["content"] if isinstance(block, dict)]
        calls = [block["id"] for block in blocks if block.get("type") == "tool-call"]
        results = [block["toolCallId"] for block in blocks if block.get("type") == "tool-result"]
        if (calls or results) and not tools:
            faults.append("tool blocks without tools")
        if message["role"] == "assistant":
            faults += [f"{call_id} was not answered" for call_id in sorted(waiting)]
            waiting = set(calls)
        for call_id in results:
            if call_id in waiting:
                waiting.discard(call_id)
            else:
                faults.append(f"the answer to {call_id} has no call")
    return faults + [f"{call_id} was not answered" for call_id in sorted(waiting)]


def summarising(*script: Step, window: int | None = None, **facts: Any) -> StrictRoute:
    """Return a strict route that follows a script, and then summarises."""
    takes = Capabilities(user_images=True, tool_images=True, context_window=window)
    facts.setdefault("takes", takes)
    return StrictRoute(script, otherwise=says(SUMMARY), window=window, **facts)


def run_meanwhile(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in an event loop of its own, while this thread's one stands still."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run, work).result()


def compactor(
    route: ScriptedRoute, waterfalls: Waterfalls | None = None, **settings: Any
) -> Compactor:
    """Return an engine that asks one route."""
    chains = Waterfalls() if waterfalls is None else waterfalls
    return Compactor(lambda _provider: route, CompactionSettings(**settings), chains)


def compact(
    access: HostedSession,
    route: ScriptedRoute,
    waterfalls: Waterfalls | None = None,
    **wish: Any,
) -> Outcome:
    """Summarise a session now."""
    return run(compactor(route, waterfalls).compact(access, CompactionWish(**wish)))


def compacted(access: HostedSession, route: ScriptedRoute, **wish: Any) -> Compacted:
    """Summarise a session now, and be sure that it was."""
    outcome = compact(access, route, **wish)
    assert isinstance(outcome, Compacted), outcome
    return outcome


def last_request(route: ScriptedRoute) -> LlmRequest:
    """Return the newest request that was prepared."""
    return route.requests[-1]


def metered(access: HostedSession) -> Meter:
    """Return a meter that has read a session's log."""
    meter = Meter()
    meter.read(access.sessions.log(access.session_id))
    return meter


def empty_reply(*chunks: Any) -> Reply:
    """Return a reply of these chunks."""
    return Reply(tuple(chunks))
