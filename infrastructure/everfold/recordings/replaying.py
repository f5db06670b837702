"""Replaying a recording on a real host: its acts are done again, and everything is compared."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from everfold.agent.agent import Agent
from everfold.agent.requests import rebuild_request
from everfold.host.access import HostedSession
from everfold.host.sessions import Sessions
from everfold.llm.route import LlmRequest
from everfold.plugins.waterfalls import Waterfalls
from everfold.projections.compaction.engine import Compactor
from everfold.projections.compaction.errors import CompactionError
from everfold.projections.compaction.job import CompactionWish
from everfold.recordings.comparing import first_difference, first_of
from everfold.recordings.normalising import Normaliser
from everfold.recordings.playing import Dispatched, Player
from everfold.recordings.recording import Act, Recording
from everfold.session.deciding import AppendEvent
from everfold.session.errors import AppendVetoedError, SessionError
from everfold.session.events import Origin, Recorded
from everfold.session.ids import seq_of
from everfold.session.session import Session

CANCELLING = ("cancel", "crash")


class Host(Protocol):
    """What a replay needs of an open profile."""

    sessions: Sessions
    waterfalls: Waterfalls

    def agent(self, session_id: str, *, takes_over: bool = False, **more: Any) -> Agent:
        """Return an agent on a session."""
        ...

    def compactor(self) -> Compactor:
        """Return what summarises sessions."""
        ...


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay came to.

    Attributes:
        events: how many events it stored; `requests` how many requests it dispatched.
        differences: the first one of the events, of the requests, of the requests as they are
            rebuilt from the log; empty if all is equal.
    """

    session_id: str
    events: int
    requests: int
    differences: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether the replay was the recording again."""
        return not self.differences


@contextmanager
def cut_off(sessions: Sessions) -> Iterator[None]:
    """Let nothing more be stored through a host: what its agents do is as lost as in a crash."""

    def refuse(_session: Session, _events: Sequence[Recorded]) -> None:
        raise AppendVetoedError("the process has crashed")

    sessions.publications.append(refuse)
    try:
        yield
    finally:
        sessions.publications.remove(refuse)


@dataclass(slots=True)
class _Run:
    """One replay under way."""

    host: Host
    player: Player
    session_id: str
    agent: Agent = field(init=False)
    asking: "asyncio.Task[object] | None" = None

    def __post_init__(self) -> None:
        self.agent = self._agent()

    def _agent(self, *, takes_over: bool = False) -> Agent:
        return self.host.agent(
            self.session_id, takes_over=takes_over, tools=self.player.tools(), jitter=lambda: 0.0
        )

    async def do(self, act: Act, following: Act | None) -> None:
        match act.deed:
            case "ask":
                await self._ask(act, following)
            case "cancel":
                self.agent.cancel()
                await self.settled()
            case "crash":
                await self._crash()
            case "resume":
                self.agent = self._agent(takes_over=True)
                await self.agent.attach()
            case "compact":
                await self._compact(act.focus)
            case "append":
                origin = Origin(actor="user")
                access = HostedSession(self.host.sessions, self.session_id, origin)
                access.append((AppendEvent(act.type, act.data),))

    async def _ask(self, act: Act, following: Act | None) -> None:
        """Ask; if the next act happens meanwhile, come back when the recording is that far."""
        self.player.stuck.clear()
        self.asking = asyncio.create_task(self._quiet(self.agent.ask(list(act.content))))
        if following is None or following.deed not in CANCELLING:
            await self.settled()
            return
        waiting = asyncio.create_task(self.player.stuck.wait())
        await asyncio.wait({waiting, self.asking}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def settled(self) -> None:
        """Wait for the question that runs, if one does."""
        if self.asking is not None:
            await self.asking
            self.asking = None

    async def _quiet(self, work: Any) -> None:
        """Wait for a question; what it raises shows in the comparison."""
        with suppress(SessionError):
            await work

    async def _crash(self) -> None:
        with cut_off(self.host.sessions):
            self.agent.cancel()
            await self.settled()

    async def _compact(self, focus: str) -> None:
        model = self.agent.settings.model
        wish = CompactionWish(provider=model.provider, model=model.model, focus=focus)
        access = HostedSession(self.host.sessions, self.session_id, Origin(actor="user"))
        with suppress(CompactionError):
            await self.host.compactor().compact(access, wish)


async def replay(recording: Recording, host: Host, player: Player) -> Replay:
    """Do a recording's acts again and compare what comes of them.

    Args:
        host: an open profile whose routes are the player's.

    Raises:
        SessionError: the store failed.
    """
    session_id = host.sessions.create().id
    player.last_seq = lambda: seq_of(host.sessions.store.version(session_id))
    run = _Run(host, player, session_id)
    following = [*recording.acts[1:], None]
    for act, after in zip(recording.acts, following, strict=True):
        await run.do(act, after)
    await run.settled()
    return _compared(recording, host.sessions, session_id, player.dispatched)


def _compared(
    recording: Recording, sessions: Sessions, session_id: str, dispatched: Sequence[Dispatched]
) -> Replay:
    names = Normaliser(session_id, recording.prompt, recording.tools)
    events = names.events(event.record() for event in sessions.log(session_id))
    found = [
        first_of(recording.events, events, "event"),
        _requests_difference(recording, dispatched, names),
        _rebuilt_difference(sessions, session_id, dispatched),
    ]
    return Replay(
        session_id, len(events), len(dispatched), tuple(each for each in found if each is not None)
    )


def _requests_difference(
    recording: Recording, dispatched: Sequence[Dispatched], names: Normaliser
) -> str | None:
    recorded = [
        {"seq": each.seq, "header": each.header, "messages": each.messages}
        for each in recording.exchanges
    ]
    played = [
        names.value(
            {
                "seq": each.seq,
                "header": dict(each.request.header),
                "messages": list(each.request.messages),
            }
        )
        for each in dispatched
    ]
    return first_of(recorded, played, "request")


def _rebuilt_difference(
    sessions: Sessions, session_id: str, dispatched: Sequence[Dispatched]
) -> str | None:
    """Return where a request differs from the one rebuilt from the log."""
    for number, each in enumerate(dispatched):
        rebuilt = rebuild_request(sessions, session_id, each.seq)
        found = first_difference(_plain(rebuilt), _plain(each.request), f"rebuilt request {number}")
        if found is not None:
            return found
    return None


def _plain(request: LlmRequest) -> dict[str, Any]:
    return {"header": dict(request.header), "messages": list(request.messages)}
