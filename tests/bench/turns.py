"""What a turn costs beside the model: the loop and an adapter's preparing, by length of the history.

What still grows is writing the body: 10,000 messages of 600 bytes are 6 MB.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from everfold.agent.agent import Agent
from everfold.agent.settings import AgentSettings, ModelSettings
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.llm.chunks import Chunk
from everfold.llm.route import Capabilities, LlmRequest, Prepared, Route
from everfold.routes.anthropic_messages import AnthropicMessagesRoute, AnthropicSettings
from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute
from everfold.routes.scripted import says
from everfold.session.deciding import AppendEvent
from tests.bench.pairs import Row
from tests.bench.payloads import assistant_message, user_message

HISTORIES = (10, 1_000, 10_000)
NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing is sent there: the answers come from a script."""

Make = Callable[[RequestVersions], Route]


class Instant:
    """A route that prepares each request as another one does, and answers at once."""

    def __init__(self, inner: Route) -> None:
        self._inner = inner

    @property
    def provider(self) -> str:
        """The inner route's name."""
        return self._inner.provider

    def capabilities(self, model: str) -> Capabilities:
        """What the inner route takes."""
        return self._inner.capabilities(model)

    async def prepare(self, request: LlmRequest) -> Prepared:
        """Prepare as the inner route does, down to the bytes that it would send."""
        return await self._inner.prepare(request)

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:  # nothing is sent
        """Answer from a script."""
        for chunk in says("noted").chunks:
            yield chunk

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:
        """The inner route's prices."""
        return self._inner.image_tokens(model, images)


def chat(versions: RequestVersions) -> Route:
    """Return the route to chat completions."""
    settings = ChatSettings(provider="bench", base_url=NOWHERE, api_key=None)
    return OpenAiChatRoute(settings, versions)


def messages(versions: RequestVersions) -> Route:
    """Return the route to Anthropic Messages."""
    settings = AnthropicSettings(provider="bench", base_url=NOWHERE, api_key=None)
    return AnthropicMessagesRoute(settings, versions)


def turn_rows(folder: Path, *, turns: int) -> list[Row]:
    """Measure both adapters; each line is compared with the shortest history."""
    rows: list[Row] = []
    with open_sessions(f"sqlite:///{folder / 'turns.sqlite'}?synchronous=off") as sessions:
        versions = RequestVersions(FileAttachments(folder / "attachments"))
        makes: dict[str, Make] = {"chat completions": chat, "Anthropic Messages": messages}
        for name, make in makes.items():
            times = {n: _turn_ms(sessions, make(versions), n, turns) for n in HISTORIES}
            for history in HISTORIES[1:]:
                rows.append(_row(name, history, times[history], times[HISTORIES[0]]))
    return rows


def _row(name: str, history: int, ours: float, base: float) -> Row:
    work = f"a turn by {name} after {history} messages, to {HISTORIES[0]}"
    return Row(work, "sqlite", ours, base, "ms", ours / base, "<= 1.2")


def _turn_ms(sessions: Sessions, route: Route, history: int, turns: int) -> float:
    """Return the median time of a turn after the first, in milliseconds."""
    name = sessions.create().id
    for start in range(0, history, 1000):
        count = min(1000, history - start)
        sessions.append_batch(name, [_said(start + n) for n in range(count)])
    return asyncio.run(_turns(sessions, name, Instant(route), turns))


def _said(number: int) -> AppendEvent:
    """Return what users and the model say in turn."""
    return assistant_message(number) if number % 2 else user_message(number)


async def _turns(sessions: Sessions, name: str, route: Route, turns: int) -> float:
    settings = AgentSettings(ModelSettings(route.provider, "bench-1"), "be brief")
    agent = Agent(sessions, name, route, settings)
    times = []
    for _ in range(turns + 1):
        start = time.perf_counter()
        result = await agent.ask("and now?")
        times.append((time.perf_counter() - start) * 1000)
        assert result.text == "noted"
    await agent.close()
    return statistics.median(times[1:])
