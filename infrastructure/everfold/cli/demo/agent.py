"""The agent of the demonstration: the loop of everfold on a host, with a scripted route and one tool.

Run as a program it is the process that gets killed: it reads a job from standard input, reports
every acknowledged append on standard output, and waits for its end in the middle of a tool call.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from everfold.agent.agent import Agent
from everfold.agent.tools import ToolOutput, tool
from everfold.attachments.filesystem import FileAttachments
from everfold.cli.demo.errors import DemoError
from everfold.cli.demo.route import MODEL, PROVIDER, TOOL, DemoRoute
from everfold.cli.demo.tool import zoom_tool
from everfold.llm.budgets import ImageBudget
from everfold.llm.chunks import Chunk
from everfold.profiles.opening import OpenProfile, open_profile
from everfold.profiles.profile import profile_of
from everfold.session.errors import SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json

SYSTEM = "You look at pictures and say in one sentence what changed."
Zoom = Callable[[], ToolOutput]


@contextmanager
def hosting(store_url: str, attachments: str, route: DemoRoute) -> Iterator[OpenProfile]:
    """Run the demonstration's host on a store.

    Raises:
        SessionError: the store or a plugin cannot be used.
    """
    table = {
        "system_prompt": SYSTEM,
        "attachments": attachments,
        "plugins": ["image-offload"],
        "routes": {PROVIDER: {"adapter": "scripted", "model": MODEL}},
    }
    with open_profile(profile_of(table, "demo", None), store=store_url, routes=[route]) as host:
        yield host


def agent_of(host: OpenProfile, session_id: str, zoom: Zoom) -> Agent:
    """Return the agent of a session; its only tool is `zoom`."""
    return host.agent(session_id, tools=[tool(name=TOOL, description="Look closer.")(zoom)])


async def ask(agent: Agent, text: str, images: Sequence[Json]) -> None:
    """Have one turn.

    Raises:
        DemoError: the model gave no answer.
    """
    result = await agent.ask([text, *images])
    if not result.is_completed:
        raise DemoError(f"a turn ended as {result.kind}: {result.failure}")


@dataclass(frozen=True, slots=True)
class Reporting:
    """A watcher that reports what the store has acknowledged."""

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        """Say nothing of what is not stored."""

    def on_events(self, events: Sequence[Recorded]) -> None:
        """Report the last seq."""
        report({"seq": events[-1].seq})


def report(value: Json) -> None:
    """Write one line to whoever started this process, at once."""
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def never_ending_tool() -> ToolOutput:
    """Report that the tool runs, and wait for the end of the process."""
    report({"waiting": TOOL})
    while True:
        time.sleep(60)


async def play(host: OpenProfile, job: Any) -> None:
    """Have the turns of a job; in the last one the tool never ends."""
    session_id = host.sessions.create().id
    report({"session": session_id})
    zooms = iter((zoom_tool(host.attachments, job["turns"][1]["images"][-1]), never_ending_tool))
    agent = agent_of(host, session_id, lambda: next(zooms)())
    agent.watch(Reporting())
    for turn in job["turns"]:
        await ask(agent, turn["text"], turn["images"])


def main() -> None:
    """Host the session of the job on standard input until somebody kills this process."""
    job = orjson.loads(sys.stdin.buffer.read())
    route = DemoRoute(FileAttachments(job["attachments"]), ImageBudget(**job["budget"]))
    try:
        with hosting(job["store"], job["attachments"], route) as host:
            asyncio.run(play(host, job))
    except SessionError as error:
        report({"error": str(error)})


if __name__ == "__main__":
    main()
