"""Any sequence of turns, failures, cancellations, crashes and decisions leaves a sound log."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from everfold.agent.agent import Agent
from everfold.agent.errors import AgentError
from everfold.agent.settings import Limits
from everfold.audit.auditing import audit
from everfold.host.sessions import Sessions
from everfold.llm.chunks import BlockEnd, Chunk, TextDelta, ToolCallDelta
from everfold.projections.image_offload.decisions import bring_back, occurrences, omit
from everfold.routes.scripted import Reply, calls, fails, hangs, says
from everfold.session.errors import StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from tests.agent.faults import CrashError, crashing, failing
from tests.agent.kit import MODEL, Host, hosting, png, run, unanswered

CALL = {"type": "tool-call", "id": "twin", "name": "give", "arguments": '{"what": "x"}'}
REPLIES: dict[str, Reply] = {
    "says": says("hello"),
    "says badly": says("a\ud800b", pieces=1),
    "says nothing": says(""),
    "is cut": says("half", finish="max-tokens"),
    "breaks off": Reply((TextDelta(0, "half"),)),
    "hangs": hangs(TextDelta(0, "half"), BlockEnd(1, CALL), ToolCallDelta(2, "c", "{", "give")),
    "calls": calls(("c1", "give", {"what": "text"}), ("c2", "give", {"what": "image"})),
    "calls badly": calls(("c1", "give", "{oops"), ("c2", "nothing", {}), ("", "give", {})),
    "calls twins": Reply((BlockEnd(0, CALL), BlockEnd(1, CALL), *says("").chunks[-1:])),
    "calls and raises": calls(("c1", "give", {"what": "error"}), text="I try"),
    "is down": fails("SERVER"),
    "refuses": fails("INVALID_REQUEST"),
    "wants fewer": fails("IMAGE_OFFLOAD_REQUIRED", offload_images=1),
    "wants none": fails("IMAGE_OFFLOAD_REQUIRED", offload_images=9),
}


@dataclass(frozen=True)
class Turn:
    """One turn: the user's images, what the model does, and where it is disturbed."""

    images: int
    script: Sequence[str]
    cancel_at: str | None = None
    crash_at: int | None = None
    fail_at: int | None = None
    is_stored: bool = False
    joins: bool = False


@dataclass(frozen=True)
class Decide:
    """An explicit decision about one image."""

    number: int


@dataclass(frozen=True)
class Change:
    """Another prompt, or another temperature."""

    prompt: str | None
    temperature: float | None


@dataclass(frozen=True)
class Fork:
    """Go on in a fork."""


POINTS = ["turn/start", "request/header", "assistant/message", "tool/call", "tool/result", "chunk"]
TURNS = st.builds(
    Turn,
    st.integers(0, 2),
    st.lists(st.sampled_from(sorted(REPLIES)), max_size=5),
    cancel_at=st.none() | st.sampled_from(POINTS),
    crash_at=st.none() | st.integers(1, 9),
    fail_at=st.none() | st.integers(1, 9),
    is_stored=st.booleans(),
    joins=st.booleans(),
)
ACTS = st.lists(
    st.one_of(
        TURNS,
        TURNS,
        st.builds(Decide, st.integers(0, 9)),
        st.builds(Change, st.sampled_from([None, "", "be bold"]), st.sampled_from([None, 0.5])),
        st.builds(Fork),
    ),
    min_size=1,
    max_size=7,
)


@dataclass
class CancellingAt:
    """Cancels an agent's turn once, at a point."""

    agent: Agent
    point: str | None

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        if self.point == "chunk":
            self.agent.cancel()

    def on_events(self, events: Sequence[Recorded]) -> None:
        if any(event.type == self.point for event in events):
            self.agent.cancel()


def give(what: str = "text") -> object:
    """Give something."""
    if what == "error":
        raise ValueError("no such thing \udcff")
    return png(77) if what == "image" else "given"


@dataclass
class Player:
    """Plays acts on one session after another."""

    host: Host
    session_id: str
    prompt: str = "be brief"
    model: object = field(default=MODEL)

    def play(self, act: Turn | Decide | Change | Fork) -> None:
        match act:
            case Turn():
                self.turn(act)
            case Decide(number):
                self.decide(number)
            case Change(prompt, _):
                self.prompt = self.prompt if prompt is None else prompt
            case Fork():
                self.host.sessions.resume(self.session_id)
                self.session_id = self.host.sessions.fork(self.session_id)

    def decide(self, number: int) -> None:
        access = self.host.access(self.session_id)
        found = [
            image
            for image in occurrences(access.view(), self.host.sessions.log(self.session_id))
            if image.state != "output"
        ]
        if found:
            image = found[number % len(found)]
            change = omit if image.state == "retained" else bring_back
            change(access, {image.seq: [image.index]})

    def turn(self, act: Turn) -> None:
        sessions = self.disturbed(act)
        route = self.host.route(*(REPLIES[name] for name in act.script), otherwise=says("end"))
        agent = self.host.agent(
            route,
            self.session_id,
            tools=[give],
            prompt=self.prompt,
            sessions=sessions,
            takes_over=True,
            limits=Limits(grace_s=1, steps=6, first_chunk_timeout_s=0.2, chunk_timeout_s=0.05),
        )
        agent.watch(CancellingAt(agent, act.cancel_at))
        try:
            run(self.talk(agent, act))
        except (CrashError, StoreUnavailableError, AgentError):
            return

    def disturbed(self, act: Turn) -> Sessions:
        sessions = self.host.sessions
        if act.crash_at is not None:
            return crashing(sessions, act.crash_at, is_stored=act.is_stored)
        return sessions if act.fail_at is None else failing(sessions, act.fail_at)

    async def talk(self, agent: Agent, act: Turn) -> None:
        if act.joins:
            await agent.queue("by the way", target="next-step")
        await asyncio.wait_for(agent.ask(["look", *map(png, range(act.images))]), 30)


def unpaired(messages: Sequence[Json]) -> list[str]:
    """Return what a strict provider would refuse: calls without one answer, answers without a call."""
    faults: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool-call":
                open_calls.append(block["id"])
            elif block["type"] == "tool-result" and block["toolCallId"] in open_calls:
                open_calls.remove(block["toolCallId"])
            elif block["type"] == "tool-result":
                faults.append(f"an answer to {block['toolCallId']} without a call")
            elif open_calls and block["type"] in ("text", "image"):
                faults.append(f"{open_calls} are not answered before {message['id']}")
        if message["role"] == "assistant" and len(set(open_calls)) != len(open_calls):
            faults.append(f"{open_calls} are not unique")
    return faults + [f"{call} is not answered" for call in open_calls]


def check(host: Host, session_id: str) -> None:
    host.sessions.resume(session_id)
    messages = list(host.sessions.load(session_id).messages())
    assert unanswered(host.log(session_id)) == {}
    assert unpaired(messages) == []
    report = audit(host.sessions, session_id)
    assert report.is_sound, report
    with host.other() as theirs:
        assert list(theirs.load(session_id).messages()) == messages
        assert list(theirs.load(theirs.fork(session_id)).messages()) == messages
    types = [event.type for event in host.log(session_id)]
    for kind in ("turn", "step"):
        marks = [type_ for type_ in types if type_.startswith(f"{kind}/")]
        assert marks == [f"{kind}/start", f"{kind}/end"] * (len(marks) // 2)


@settings(max_examples=60)
@given(ACTS)
def test_any_history_of_disturbed_turns_leaves_a_sound_session(
    acts: list[Turn | Decide | Change | Fork],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'agents.db'}?synchronous=off"
        with hosting(url) as host:
            player = Player(host, host.new_session())
            played = {player.session_id}

            for act in acts:
                player.play(act)
                played.add(player.session_id)

            for session_id in played:
                check(host, session_id)
