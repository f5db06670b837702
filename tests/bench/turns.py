"""What a turn costs beside the model, by length of the history.

Measured is the processor time of the process, all its threads, from `Agent.ask` to its result: the
loop, its commits to SQLite (synchronous off: no disk is waited for), the adapter, and the vendor's
real SDK down to the HTTP transport. That is the bench's own: it takes the bytes of the request one
piece after another, as a socket would, and answers at once with a stream of the vendor. So neither
the model nor the wire is in the figures, and nothing is waited for. The first turn is not in them
either: it reads the history and writes all of it for the first time.

One turn after each history makes a round; each line's ratio is the median over the rounds.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from everfold.agent.agent import Agent
from everfold.agent.settings import AgentSettings, ModelSettings
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.llm.route import Route, hang_up
from everfold.routes.anthropic_messages import AnthropicMessagesRoute, AnthropicSettings
from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute
from everfold.routes.openai_responses import OpenAiResponsesRoute, ResponsesSettings
from everfold.routes.uploads import FileUploads
from everfold.session.deciding import AppendEvent
from tests.bench.pairs import Row
from tests.bench.payloads import assistant_message, user_message
from tests.providers.in_process import InProcess

HISTORIES = (10, 1_000, 10_000)
NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing is sent there: the transport is the bench's own."""

_TURNS = 4
"""A turn takes so little time that there can be more of them than rounds of other work."""

Make = Callable[[Path], Route]


def _versions(folder: Path) -> RequestVersions:
    return RequestVersions(FileAttachments(folder / "attachments"))


def chat(folder: Path) -> Route:
    """Return the route to chat completions."""
    settings = ChatSettings(provider="bench", base_url=NOWHERE, api_key=None)
    return OpenAiChatRoute(settings, _versions(folder), transport=lambda: InProcess("chat"))


def messages(folder: Path) -> Route:
    """Return the route to Anthropic Messages."""
    settings = AnthropicSettings(provider="bench", base_url=NOWHERE, api_key=None)
    return AnthropicMessagesRoute(
        settings, _versions(folder), transport=lambda: InProcess("messages")
    )


def responses(folder: Path) -> Route:
    """Return the route to OpenAI Responses, without files."""
    settings = ResponsesSettings(provider="bench", base_url=NOWHERE, api_key=None, has_files=False)
    uploads = FileUploads(folder / "uploads")
    return OpenAiResponsesRoute(
        settings, _versions(folder), uploads, transport=lambda: InProcess("responses")
    )


ADAPTERS: dict[str, Make] = {
    "chat completions": chat,
    "Anthropic Messages": messages,
    "OpenAI Responses": responses,
}


def turn_rows(folder: Path, *, turns: int) -> list[Row]:
    """Measure the adapters; each line is compared with the shortest history."""
    rows: list[Row] = []
    with open_sessions(f"sqlite:///{folder / 'turns.sqlite'}?synchronous=off") as sessions:
        for name, make in ADAPTERS.items():
            rounds = asyncio.run(_rounds(sessions, make(folder), turns))
            rows.extend(_row(name, place, rounds) for place in range(1, len(HISTORIES)))
    return rows


def _row(name: str, place: int, rounds: list[list[float]]) -> Row:
    work = f"a turn by {name} after {HISTORIES[place]} messages, to {HISTORIES[0]}"
    ours = statistics.median(times[place] for times in rounds)
    base = statistics.median(times[0] for times in rounds)
    ratio = statistics.median(times[place] / times[0] for times in rounds)
    return Row(work, "sqlite", ours, base, "ms CPU", ratio, "<= 1.2")


async def _rounds(sessions: Sessions, route: Route, turns: int) -> list[list[float]]:
    """Return the times of turns after the first, in milliseconds; in each round one for each history."""
    settings = AgentSettings(ModelSettings(route.provider, "bench-1"), "be brief")
    agents = [Agent(sessions, _session(sessions, length), route, settings) for length in HISTORIES]
    rounds = [[await _turn_ms(agent) for agent in agents] for _ in range(1 + turns * _TURNS)]
    for agent in agents:
        await agent.close()
    await hang_up([route])
    return rounds[1:]


def _session(sessions: Sessions, history: int) -> str:
    name = sessions.create().id
    for start in range(0, history, 1000):
        count = min(1000, history - start)
        sessions.append_batch(name, [_said(start + n) for n in range(count)])
    return name


def _said(number: int) -> AppendEvent:
    """Return what users and the model say in turn."""
    return assistant_message(number) if number % 2 else user_message(number)


async def _turn_ms(agent: Agent) -> float:
    start = time.process_time()
    result = await agent.ask("and now?")
    taken = time.process_time() - start
    assert result.text == "noted"
    return taken * 1000
