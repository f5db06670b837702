"""Agents that talk to a provider on loopback until they are killed, and what must hold of their logs."""

import itertools
import json
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from everfold.agent.agent import Agent
from everfold.agent.settings import AgentSettings, ModelSettings
from everfold.agent.sync import SyncAgent
from everfold.agent.tools import ToolContext
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.audit.auditing import audit
from everfold.host.opening import open_sessions
from everfold.llm.chunks import Chunk
from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute
from everfold.session.events import Recorded
from everfold.session.repair import NOT_STARTED, OUTCOME_UNKNOWN
from tests.agent.kit import PLUGINS, QUICK, Host, unanswered
from tests.agent.test_properties import unpaired
from tests.providers.answers import Answer, ToolUse
from tests.providers.strict_fake import Call

MODEL = ModelSettings("p", "m-1")
LONGEST_DEED_S = 0.03


@dataclass
class Calling:
    """A model that calls two tools, each call under an id of its own, and then says so at length."""

    pause_s: float = 0.004
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __call__(self, call: Call) -> Answer:
        """Answer a request; called by the provider's threads."""
        messages = json.loads(call.raw)["messages"]
        if messages[-1]["role"] == "tool":
            return Answer("Both are noted. " * 8, between_s=self.pause_s)
        number = next(self._numbers)
        calls = tuple(ToolUse(f"call-{number}{letter}", "note") for letter in "ab")
        return Answer("I note it.", calls=calls, finish="tool-calls", between_s=self.pause_s)


@dataclass(frozen=True)
class Deeds:
    """What the tools did to the world: a line for each call, by whatever process."""

    path: Path

    def note(self, context: ToolContext) -> str:
        """Note something, once for each call of this tool."""
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, f"{context.call_id}\n".encode())
        finally:
            os.close(handle)
        time.sleep(random.random() * LONGEST_DEED_S)
        return "noted"

    def counted(self) -> Counter[str]:
        """Return how often the tool ran for each call."""
        return Counter(self.path.read_text().split()) if self.path.exists() else Counter()


def chat_route(base_url: str, folder: Path) -> OpenAiChatRoute:
    """Return a route to the provider."""
    settings = ChatSettings(provider="p", base_url=base_url, api_key_env=None)
    return OpenAiChatRoute(settings, RequestVersions(FileAttachments(folder)))


@dataclass
class Telling:
    """A watcher that tells what was stored, as a user would have been shown it."""

    pipe: Connection

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        """Tell nothing: what is not stored may be lost."""

    def on_events(self, events: Sequence[Recorded]) -> None:
        """Tell of stored events."""
        self.pipe.send([(event.seq, event.type) for event in events])


def talk_for_ever(
    url: str, base_url: str, session_id: str, folder: Path, seed: int, pipe: Connection
) -> None:
    """Take a session over and run turns with tools until killed; tell each event that is stored.

    The first report is empty, and says that the process has begun.
    """
    pipe.send([])
    random.seed(seed)
    deeds = Deeds(folder / "deeds")
    with open_sessions(url, plugins=PLUGINS) as sessions:
        agent = Agent(
            sessions,
            session_id,
            chat_route(base_url, folder),
            AgentSettings(MODEL, "be brief", QUICK),
            tools=[deeds.note],
            takes_over=True,
        )
        agent.watch(Telling(pipe))
        with SyncAgent(agent) as talking:
            for number in itertools.count():
                talking.ask(f"turn {seed}.{number}")


def check_sound(host: Host, session_id: str, told: set[tuple[int, str]], deeds: Deeds) -> None:
    """Assert that nothing is missing that was told, and that the log agrees with what tools did."""
    events = host.log(session_id)
    assert told <= {(event.seq, event.type) for event in events}
    assert unanswered(events) == {}
    assert unpaired(list(host.sessions.load(session_id).messages())) == []
    assert audit(host.sessions, session_id).is_sound
    check_deeds(events, deeds.counted())


def check_deeds(events: Sequence[Recorded], done: Counter[str]) -> None:
    """Assert that no call was carried out twice, and that each answer says the truth about it."""
    assert all(count == 1 for count in done.values())
    for event in events:
        if event.type != "tool/result":
            continue
        block = event.data["message"]["content"][0]
        said = block["content"][0]["text"]
        if said == NOT_STARTED:
            assert done[block["toolCallId"]] == 0
        elif said != OUTCOME_UNKNOWN:
            assert (said, done[block["toolCallId"]]) == ("noted", 1)
