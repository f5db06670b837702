"""A session that is recorded while a test drives it, on a real host with a real provider on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from everfold.agent.agent import Agent
from everfold.agent.results import TurnResult
from everfold.agent.tools import ImageData
from everfold.llm.chunks import Chunk, TextDelta
from everfold.profiles.opening import OpenProfile, open_profile
from everfold.profiles.profile import profile_of
from everfold.projections.compaction.engine import Outcome
from everfold.projections.compaction.job import CompactionWish
from everfold.recordings.recorder import Recorder
from everfold.recordings.recording import Act, Recording
from everfold.recordings.replaying import cut_off
from everfold.session.errors import SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from tests.providers.strict_fake import StrictFake

KEY = "sk-test-0000-recorded"
ENVIRONMENT = {"FAKE_API_KEY": KEY}
PATIENCE_S = 30.0


def table(fake: StrictFake | None = None, **more: Any) -> dict[str, Any]:
    """Return a profile with one route: to chat completions of a fake, or a scripted one."""
    route: dict[str, Any] = {"adapter": "scripted", "model": "script-1"}
    if fake is not None:
        route = {
            "adapter": "openai-chat",
            "model": "fake-1",
            "base_url": fake.base_url,
            "api_key_env": "FAKE_API_KEY",
        }
    route |= more.pop("route", {})
    profile = {
        "system_prompt": "You help people at the harbour. Be brief.",
        "retry": {"base_ms": 1, "cap_ms": 2},
        "agent": {"grace_s": 1},
    }
    return {**profile, "routes": {"fake": route}, **more}


@dataclass(slots=True)
class Tape:
    """One recorded session."""

    host: OpenProfile
    recorder: Recorder
    tools: Sequence[Callable[..., object]]
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        self.agent = self._agent(self.host.sessions.create().id)
        self.recorder.begin(self.host.sessions, self.agent.session_id)

    def _agent(self, session_id: str, *, takes_over: bool = False) -> Agent:
        return self.host.agent(
            session_id, tools=self.tools, takes_over=takes_over, jitter=lambda: 0.0
        )

    def content(self, text: str, images: Sequence[bytes]) -> list[Json]:
        refs = self.host.admit([ImageData(data, f"{n}.png") for n, data in enumerate(images, 1)])
        blocks: list[Json] = [{"type": "text", "text": text}]
        return blocks + [{"type": "image", "attachment": ref} for ref in refs]

    async def ask(self, text: str, *images: bytes) -> TurnResult:
        content = self.content(text, images)
        self.recorder.note(Act("ask", tuple(content)))
        return await self.agent.ask(content)

    async def ask_and(self, end: str, text: str) -> None:
        """Ask, and cancel, or crash, when the provider or a tool has begun and says nothing more."""
        begun = _Begun()
        leave = self.agent.watch(begun)
        asking = asyncio.create_task(self.ask(text))
        await asyncio.wait_for(begun.event.wait(), PATIENCE_S)
        if end == "cancel":
            self.recorder.note(Act("cancel"))
            self.agent.cancel()
            await asking
        else:
            self.recorder.note(Act("crash"))
            with cut_off(self.host.sessions):
                self.agent.cancel()
                with suppress(SessionError):
                    await asking
        leave()

    async def resume(self) -> None:
        self.recorder.note(Act("resume"))
        self.agent = self._agent(self.agent.session_id, takes_over=True)
        await self.agent.attach()

    async def compact(self) -> Outcome:
        model = self.agent.settings.model
        self.recorder.note(Act("compact"))
        wish = CompactionWish(provider=model.provider, model=model.model)
        return await self.host.compactor().compact(self.host.access(self.agent.session_id), wish)

    def recording(self, about: str = "") -> Recording:
        return self.recorder.recording(self.agent, self.host.acting(), about)

    def types(self) -> list[str]:
        return [event.type for event in self.host.sessions.log(self.agent.session_id)]


@dataclass(slots=True)
class _Begun:
    """A watcher that says when text has come, or a tool was called."""

    event: asyncio.Event = field(default_factory=asyncio.Event)

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        if isinstance(chunk, TextDelta):
            self.event.set()

    def on_events(self, events: Sequence[Recorded]) -> None:
        if any(event.type == "tool/call" for event in events):
            self.event.set()


@asynccontextmanager
async def taping(
    profile: Mapping[str, Any],
    tools: Sequence[Callable[..., object]] = (),
    *,
    store: str = "sqlite://",
) -> AsyncIterator[Tape]:
    """Yield a recorded session on a new host."""
    recorder = Recorder()
    opened = open_profile(
        profile_of(profile, "taping", None),
        store=store,
        wrap=recorder.wrap,
        environ=ENVIRONMENT,
    )
    with opened as host:
        yield Tape(host, recorder, tools)
        await host.disconnect()
