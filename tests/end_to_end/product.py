"""The product as a host runs it: a profile opened on a real store, talking to a StrictFake."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from everfold.agent.agent import Agent
from everfold.agent.content import Part
from everfold.agent.results import TurnResult
from everfold.agent.tools import ImageData
from everfold.host.access import HostedSession
from everfold.host.sessions import Sessions
from everfold.llm.images import images
from everfold.llm.route import Route
from everfold.profiles.opening import OpenProfile, open_profile
from everfold.profiles.profile import Profile, profile_of
from everfold.projections.compaction.engine import Outcome
from everfold.projections.compaction.job import CompactionWish
from everfold.session.events import Recorded
from everfold.session.frozen import Json, thaw
from tests.agent.kit import Checking
from tests.providers.strict_fake import StrictFake
from tests.routes.kit import picture

T = TypeVar("T")

KEY = "sk-test-0000000000"
TOKEN = "team-invented-9c2f77ab"
ENVIRON = {"THE_KEY": KEY, "THE_TOKEN": TOKEN}
PATIENCE_S = 120.0
"""After so long a hanging test fails; nothing is measured by it."""

UNCHECKED: Mapping[str, Any] = {
    "max_body_bytes": None,
    "body_quantum": 1,
    "max_image_bytes": None,
    "max_edge": None,
    "many_images": None,
    "many_images_edge": None,
    "context_window": None,
    "inline": {"max_bytes": None, "byte_quantum": 1, "max_images": None, "count_quantum": 1},
    "request_version": {"max_edge": 9000, "max_bytes": 8_000_000},
}
"""Limits of a route that knows nothing of its provider's."""

ADAPTERS: Mapping[str, Mapping[str, Any]] = {
    "chat": {"adapter": "openai-chat"},
    "messages": {"adapter": "anthropic"},
    "responses": {"adapter": "openai-responses", "has_files": False},
    "files": {"adapter": "openai-responses"},
}
"""Every wire; with `files` pictures are uploaded, with the others they travel in the body."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a fresh event loop."""

    async def bounded() -> T:
        return await asyncio.wait_for(work, PATIENCE_S)

    return asyncio.run(bounded())


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; a test that hangs here fails."""
    waited = 0.0
    while not is_so():
        assert waited < PATIENCE_S, "it never came to be so"
        time.sleep(0.01)
        waited += 0.01


def route_table(
    fake: StrictFake, wire: str, limits: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a profile's table of a route to a fake provider."""
    return {
        **ADAPTERS[wire],
        "base_url": fake.url if wire == "messages" else fake.base_url,
        "api_key_env": "THE_KEY",
        "model": "m-1",
        "limits": {} if limits is None else limits,
        **more,
    }


def make_profile(routes: Mapping[str, Any], **more: Any) -> Profile:
    """Return a profile with these routes; the first is asked."""
    table = {
        "routes": routes,
        "route": next(iter(routes)),
        "system_prompt": "be brief",
        "retry": {"base_ms": 1, "cap_ms": 2},
        "agent": {"grace_s": 1.0},
        **more,
    }
    return profile_of(table, "test", None)


@dataclass
class Product:
    """A running host, one session that is talked to, and what is known about the talk.

    Attributes:
        fakes: the providers by route.
        most_calls: how many requests the test allows (S4); each test says it.
        results: what became of every turn.
        reader: another host on the same store, with nothing of the agents in memory.
    """

    host: OpenProfile
    url: str
    fakes: Mapping[str, StrictFake]
    reader: Sessions
    session_id: str = ""
    most_calls: int | None = None
    results: list[TurnResult] = field(default_factory=list)
    tools: Sequence[Callable[..., object]] = ()
    _agents: dict[tuple[str, str | None], Agent] = field(default_factory=dict)

    @property
    def sessions(self) -> Sessions:
        return self.host.sessions

    @property
    def fake(self) -> StrictFake:
        """The provider of the route that is asked."""
        return self.fakes[self.host.profile.route]

    @property
    def calls(self) -> int:
        """How many requests the providers got."""
        return sum(len(fake.calls) for fake in {id(f): f for f in self.fakes.values()}.values())

    def agent(self, route: str | None = None, session_id: str | None = None) -> Agent:
        """Return the agent of a session on a route; each is made once, and takes over."""
        chosen = session_id or self.session_id
        if (chosen, route) not in self._agents:
            self._agents[chosen, route] = self.host.agent(
                chosen, route=route, tools=self.tools, takes_over=True, jitter=lambda: 0.0
            )
        return self._agents[chosen, route]

    def say(
        self, *parts: Part, route: str | None = None, session_id: str | None = None, **more: Any
    ) -> TurnResult:
        """Put something to the model, and return what became of it."""
        agent = self.agent(route, session_id)
        result = run(self._asked(agent, parts, more))
        self.results.append(result)
        return result

    async def _asked(
        self, agent: Agent, parts: Sequence[Part], more: Mapping[str, Any]
    ) -> TurnResult:
        try:
            return await agent.ask(list(parts), **more)
        finally:
            await self.host.disconnect()

    def compact(self, **wish: Any) -> Outcome:
        """Have the session summarised, as its owner would."""

        async def work() -> Outcome:
            try:
                access = self.host.access(self.session_id)
                return await self.host.compactor().compact(access, CompactionWish(**wish))
            finally:
                await self.host.disconnect()

        return run(work())

    def old_picture(self, data: bytes, media_type: str | None = None) -> Json:
        """Return an image block as an older version might have stored it: past admission."""
        return picture(self.host.attachments, data, media_type)

    @property
    def access(self) -> HostedSession:
        return self.host.access(self.session_id)

    def log(self, session_id: str | None = None) -> list[Recorded]:
        return list(self.sessions.log(session_id or self.session_id))

    def data(self, type_: str) -> list[Json]:
        """Return the data of the log's events of one type."""
        return [thaw(event.data) for event in self.log() if event.type == type_]

    def messages(self, session_id: str | None = None) -> list[Json]:
        """Return what the model sees."""
        loaded = self.sessions.load(session_id or self.session_id)
        return [thaw(message) for message in loaded.messages()]

    def kept(self) -> list[bool]:
        """Return for each picture of the session, oldest first, whether it is retained."""
        return [
            not block.get("offloaded", False)
            for message in self.messages()
            for block in images(message["content"])
        ]

    def append(self, *wishes: Any) -> None:
        """Store events as they are, the way an older version or an import would have."""
        self.access.append(wishes)


def image(data: bytes, name: str | None = None, media_type: str | None = None) -> ImageData:
    """Return a picture to be admitted."""
    return ImageData(data, name, media_type)


@contextmanager
def running(
    url: str, profile: Profile, fakes: Mapping[str, StrictFake], session_id: str | None = None
) -> Iterator[Product]:
    """Yield the product on a store; each request must equal the one that the log gives."""
    differences: list[str] = []
    readers: list[Sessions] = []

    def compared(route: Route) -> Route:
        return Checking(route, readers[0], differences)

    with open_profile(profile, store=url, wrap=compared, environ=ENVIRON) as host:
        readers.append(Sessions(host.sessions.store, host.sessions.composition, snapshot_every=0))
        chosen = host.sessions.create().id if session_id is None else session_id
        yield Product(host, url, fakes, readers[0], chosen)
        assert differences == []


def shown_texts(product: Product, call: int = -1) -> str:
    """Return every text that the provider of the asked route read in one request."""
    seen = product.fake.calls[call].seen
    assert seen is not None
    return seen.all_text


def pictures_sent(product: Product, call: int = -1) -> int:
    """Return how many pictures one request held."""
    seen = product.fake.calls[call].seen
    assert seen is not None
    return len(seen.images)
