"""What the agent's tests are made of: a host over a real store, checked requests, logs as text."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from everfold.agent.agent import Agent
from everfold.agent.content import AdmitImages
from everfold.agent.settings import AgentSettings, Limits, ModelSettings
from everfold.agent.tools import ImageData, Tool
from everfold.host.access import HostedSession
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.llm.chunks import Chunk
from everfold.llm.retrying import RetryPolicy
from everfold.llm.route import Capabilities, LlmRequest, Prepared, Route, hang_up
from everfold.plugins.plugin import Plugin
from everfold.plugins.waterfalls import Waterfalls
from everfold.projections.image_offload.plugin import plugin as image_offload
from everfold.routes.scripted import ScriptedRoute, Step
from everfold.session.composition import Composition, Disposer
from everfold.session.events import EventLike, Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session
from tests.rebuilding import Rebuilding

T = TypeVar("T")

PLUGINS = (image_offload,)
"""What the hosts of these tests have mounted, unless a test says otherwise."""

PATIENCE_S = 60.0
"""After so long a hanging test fails; nothing is measured by it."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a fresh event loop."""

    async def bounded() -> T:
        return await asyncio.wait_for(work, PATIENCE_S)

    return asyncio.run(bounded())


@dataclass(slots=True)
class Checking:
    """A route that compares each request with the one rebuilt from the log alone, then passes it on.

    `Host.agent` puts it around every route, so no test can forget to check.

    Attributes:
        reader: another host on the same store, with nothing of the agent's in memory.
        differences: what was found; `hosting` asserts that it stays empty.
    """

    route: Route
    reader: Sessions
    differences: list[str]

    @property
    def provider(self) -> str:
        return self.route.provider

    def capabilities(self, model: str) -> Capabilities:
        return self.route.capabilities(model)

    async def prepare(self, request: LlmRequest) -> Prepared:
        Rebuilding(self.reader, self.differences).check(request)
        return await self.route.prepare(request)

    def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        return self.route.stream(prepared)

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:
        return self.route.image_tokens(model, images)

    async def close(self) -> None:
        await hang_up([self.route])


class Mounted:
    """What a plugin joins while a test runs."""

    def __init__(self, undo: ExitStack, settings: Mapping[str, object]) -> None:
        self.settings = settings
        self.waterfalls = Waterfalls()
        self._undo = undo

    def defer(self, dispose: Disposer) -> None:
        self._undo.callback(dispose)

    def leave(self) -> None:
        """End the plugins' scope."""
        self._undo.close()


@dataclass(slots=True)
class Watching:
    """Keeps what an agent tells its watchers."""

    chunks: list[Chunk] = field(default_factory=list)
    events: list[Recorded] = field(default_factory=list)

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def on_events(self, events: Sequence[Recorded]) -> None:
        self.events.extend(events)


QUICK = RetryPolicy(base_ms=1, cap_ms=2)
MODEL = ModelSettings("scripted", "model-1")


@dataclass(slots=True)
class Host:
    """A store, the sessions on it, and the routes that the test uses."""

    sessions: Sessions
    url: str
    mounted: Mounted
    reader: Sessions
    differences: list[str] = field(default_factory=list)
    checking: dict[int, Checking] = field(default_factory=dict)

    def route(self, *script: Step, **facts: Any) -> ScriptedRoute:
        """Return a route that follows a script."""
        return ScriptedRoute(script, **facts)

    def new_session(self) -> str:
        return self.sessions.create().id

    def agent(
        self,
        route: Route | Sequence[Route],
        session: str | Session | None = None,
        *,
        tools: Sequence[Tool | Callable[..., object]] = (),
        model: ModelSettings = MODEL,
        prompt: str = "be brief",
        retry: RetryPolicy = QUICK,
        limits: Limits | None = None,
        admit: AdmitImages | None = None,
        takes_over: bool = False,
        sessions: Sessions | None = None,
        waterfalls: Waterfalls | None = None,
    ) -> Agent:
        """Return an agent; on a new session if none is named."""
        limits = Limits(grace_s=1.0) if limits is None else limits
        routes = route if isinstance(route, Sequence) else (route,)
        return Agent(
            self.sessions if sessions is None else sessions,
            self.new_session() if session is None else session,
            [self._checking(one) for one in routes],
            AgentSettings(model, prompt, retry, limits),
            tools=tools,
            waterfalls=self.mounted.waterfalls if waterfalls is None else waterfalls,
            admit_images=admit,
            takes_over=takes_over,
            jitter=lambda: 0.0,
        )

    def _checking(self, route: Route) -> Checking:
        """Return what checks a route; one that agents share stays one."""
        made = Checking(route, self.reader, self.differences)
        return self.checking.setdefault(id(route), made)

    def access(self, session_id: str) -> HostedSession:
        return HostedSession(self.sessions, session_id)

    def log(self, session_id: str) -> list[Recorded]:
        return list(self.sessions.log(session_id))

    def types(self, session_id: str, first: int = 0) -> list[str]:
        """Return the types of a log's events from a seq on."""
        return [event.type for event in self.sessions.log(session_id, first=first)]

    def data(self, session_id: str, type_: str) -> list[Json]:
        """Return the data of a log's events of one type."""
        return [event.data for event in self.sessions.log(session_id) if event.type == type_]

    def other(self, url: str | None = None) -> Any:
        """Return a context in which another host serves the same store, as another process would."""
        return open_sessions(self.url if url is None else url, plugins=PLUGINS)


@contextmanager
def hosting(
    url: str, *, plugins: Sequence[Plugin] = PLUGINS, settings: Mapping[str, object] | None = None
) -> Iterator[Host]:
    """Yield a host; at the end every request that was sent must equal its rebuilt self."""
    with open_sessions(url, plugins=plugins) as sessions, ExitStack() as undo:
        mounted = Mounted(undo, settings or {})
        for plugin in plugins:
            if plugin.mount is not None:
                plugin.mount(mounted)
        reader = Sessions(sessions.store, fresh(plugins), snapshot_every=0)
        host = Host(sessions, url, mounted, reader)
        yield host
        assert host.differences == []


def fresh(plugins: Sequence[Plugin]) -> Composition:
    """Return a composition of one's own with the plugins' definitions."""
    composition = Composition()
    for plugin in plugins:
        composition.declare(plugin.event_types)
        for projection in plugin.projections:
            composition.register(projection)
    return composition


def png(number: int, size: int = 1000) -> dict[str, Json]:
    """Return an image block; equal numbers are the same attachment."""
    return {
        "type": "image",
        "attachment": {
            "attachmentId": f"sha256:{number:064x}",
            "mediaType": "image/png",
            "bytes": size,
            "width": 10,
            "height": 10,
        },
    }


def admits(images: Sequence[ImageData]) -> list[Json]:
    """Admit images that are not empty, as an attachment store would."""
    for image in images:
        if not image.data:
            raise ValueError(f"image {image.name!r} is empty")
    return [png(sum(image.data), len(image.data))["attachment"] for image in images]


def shown(route: ScriptedRoute, position: int = -1) -> list[str]:
    """Return what the model saw in one request, a line a block."""
    lines = []
    for message in route.requests[position].messages:
        lines += [f"{message['role']}: {_said(block)}" for block in message["content"]]
    return lines


def _said(block: Json) -> str:
    match block["type"]:
        case "text" | "reasoning":
            return str(block["text"])
        case "image":
            number = int(block["attachment"]["attachmentId"].removeprefix("sha256:"), 16)
            return f"[omitted {number}]" if block.get("offloaded") else f"[image {number}]"
        case "tool-call":
            return f"call {block['id']} {block['name']}"
        case "tool-result":
            inner = ", ".join(_said(part) for part in block["content"])
            return f"result {block['toolCallId']}: {inner}"
        case kind:
            return f"[{kind}]"


def unanswered(events: Sequence[EventLike]) -> dict[str, int]:
    """Return how many results each call of a log lacks, or has too many; only the faulty ones."""
    balance: dict[str, int] = {}
    for event in events:
        if event.type == "assistant/message":
            for block in event.data["message"]["content"]:
                if block["type"] == "tool-call":
                    balance[block["id"]] = balance.get(block["id"], 0) + 1
        elif event.type == "tool/result":
            call = event.data["message"]["source"]["callId"]
            balance[call] = balance.get(call, 0) - 1
    return {call: count for call, count in balance.items() if count}
