"""The demonstration itself: host, kill, resume, fork, audit, and really compare every view."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from everfold.attachments.filesystem import FileAttachments
from everfold.audit.auditing import AuditReport, audit
from everfold.audit.requests import Request, requests
from everfold.audit.walking import Step
from everfold.cli.demo.agent import agent_of, ask, hosting
from everfold.cli.demo.errors import DemoError
from everfold.cli.demo.occurrences import occurrences
from everfold.cli.demo.route import DemoRoute, budget_for
from everfold.cli.demo.tool import zoom_tool
from everfold.host.sessions import Sessions
from everfold.llm.budgets import ImageBudget
from everfold.profiles.opening import OpenProfile
from everfold.session.derive import message_of
from everfold.session.frozen import Json, json_equal
from everfold.session.ids import seq_of
from everfold.session.session import Session


@dataclass(frozen=True, slots=True)
class Crash:
    """A process that was killed in the middle of its turn.

    Attributes:
        acknowledged: events that the store had acknowledged to it.
        found: events that were in the store afterwards.
    """

    pid: int
    session_id: str
    acknowledged: int
    found: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, rebuilt from the log, and what came back.

    Attributes:
        load: bytes that its images take, as the route counts them.
        answer: the assistant's message; None if the request failed.
    """

    request: Request
    load: int
    answer: Json


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork, and whether it shows what its parent showed at the cut."""

    session_id: str
    boundary: int
    is_at_head: bool
    messages: int
    kept: int
    omitted: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, read back from the store.

    Attributes:
        closers: types of the events by which the session was resumed.
        omissions: the events that changed what the model sees, and of which messages.
    """

    attachments: Path
    stored_images: int
    budget: ImageBudget
    crash: Crash
    closers: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    omissions: tuple[Step, ...]
    forks: tuple[Fork, ...]
    audits: tuple[AuditReport, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing was lost and every view of every session agrees."""
        return (
            self.crash.acknowledged == self.crash.found
            and all(fork.agrees for fork in self.forks)
            and all(report.is_sound for report in self.audits)
        )


def play(store_url: str, attachments: FileAttachments, images: Sequence[Json]) -> Story:
    """Play the whole demonstration on a store, with image blocks that are stored already.

    Raises:
        DemoError: the agent's process failed.
        SessionError: the store refused.
    """
    half = (len(images) + 1) // 2
    # One picture alone is sent twice: two occurrences of one stored object.
    first, rest = images[:half], images[half:] or images[:1]
    budget = budget_for(_lengths(attachments, first), _lengths(attachments, rest))
    crash = _run_until_killed(_job(store_url, attachments, budget, first, rest))
    route = DemoRoute(attachments, budget)
    with hosting(store_url, str(attachments.root), route) as host:
        sessions = host.sessions
        found = seq_of(sessions.store.version(crash.session_id)) + 1
        crash = Crash(crash.pid, crash.session_id, crash.acknowledged, found)
        closers = _resume(host, crash.session_id, rest[-1])
        forks = _forks(sessions, crash.session_id)
        return _told(sessions, attachments, budget, crash, closers, forks)


def _lengths(attachments: FileAttachments, images: Sequence[Json]) -> list[int]:
    route = DemoRoute(attachments, ImageBudget())
    return [route.length_of(image) for image in images]


def _job(
    store_url: str,
    attachments: FileAttachments,
    budget: ImageBudget,
    first: Sequence[Json],
    rest: Sequence[Json],
) -> dict[str, Json]:
    turns = (
        {"text": "What is on these?", "images": first},
        {"text": "And on these? Zoom into the newest.", "images": rest},
        {"text": "Zoom in once more.", "images": []},
    )
    return {
        "store": store_url,
        "attachments": str(attachments.root),
        "budget": asdict(budget),
        "turns": turns,
    }


def _run_until_killed(job: Mapping[str, Json]) -> Crash:
    """Run the agent in a process of its own, and kill it while its tool runs."""
    command = [sys.executable, "-m", "everfold.cli.demo.agent"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(orjson.dumps(job))
            process.stdin.close()
            return _followed(process)
        finally:
            process.kill()


def _followed(process: subprocess.Popen[bytes]) -> Crash:
    """Read the process's reports until its tool runs."""
    assert process.stdout is not None
    assert process.stderr is not None
    session_id, last_seq = "", -1
    for line in process.stdout:
        told = orjson.loads(line)
        if "error" in told:
            raise DemoError(f"the agent's process stopped: {told['error']}")
        session_id = told.get("session", session_id)
        last_seq = told.get("seq", last_seq)
        if "waiting" in told:
            return Crash(process.pid, session_id, last_seq + 1, 0)
    last_words = process.stderr.read().decode(errors="replace").strip().splitlines()
    raise DemoError(f"the agent's process ended by itself: {last_words[-1:] or 'it said nothing'}")


def _resume(host: OpenProfile, session_id: str, newest: Json) -> tuple[str, ...]:
    """Take the session over, and have one more turn; return what closed the broken one."""
    before = host.sessions.load(session_id).next_seq
    host.sessions.resume(session_id)
    closers = tuple(event.type for event in host.sessions.log(session_id, first=before))
    agent = agent_of(host, session_id, zoom_tool(host.attachments, newest))
    asyncio.run(ask(agent, "What do you still see?", ()))
    return closers


def _forks(sessions: Sessions, session_id: str) -> tuple[Fork, ...]:
    """Fork at the end of the first turn, before anything was omitted, and at the head."""
    ends = (event.seq for event in sessions.log(session_id) if event.type == "turn/end")
    head = sessions.load(session_id).next_seq - 1
    return tuple(_fork(sessions, session_id, boundary, head) for boundary in (next(ends), head))


def _fork(sessions: Sessions, session_id: str, boundary: int, head: int) -> Fork:
    child = sessions.load(sessions.fork(session_id, boundary=boundary))
    parent = sessions.load(session_id, at=boundary)
    omitted = [each.is_omitted for each in occurrences(child.messages().items())]
    return Fork(
        session_id=child.id,
        boundary=boundary,
        is_at_head=boundary == head,
        messages=len(child.messages()),
        kept=omitted.count(False),
        omitted=omitted.count(True),
        agrees=_show_the_same(child, parent),
    )


def _show_the_same(left: Session, right: Session) -> bool:
    pairs = zip(left.messages().items(), right.messages().items(), strict=False)
    return (
        list(left.nodes) == list(right.nodes)
        and len(left.messages()) == len(right.messages())
        and all(a == b and json_equal(m, n) for (a, m), (b, n) in pairs)
    )


def _told(
    sessions: Sessions,
    attachments: FileAttachments,
    budget: ImageBudget,
    crash: Crash,
    closers: tuple[str, ...],
    forks: tuple[Fork, ...],
) -> Story:
    """Read everything back from the store, and audit every session."""
    omissions: list[Step] = []

    def note(step: Step) -> None:
        if step.effect == "changed":
            omissions.append(step)

    session_id = crash.session_id
    own = audit(sessions, session_id, on_step=note)
    route = DemoRoute(attachments, budget)
    found = requests(sessions.store, session_id, sessions.composition)
    return Story(
        attachments=attachments.root,
        stored_images=attachments.sizes().count,
        budget=budget,
        crash=crash,
        closers=closers,
        exchanges=tuple(_exchange(sessions, session_id, route, request) for request in found),
        omissions=tuple(omissions),
        forks=forks,
        audits=(own, *(audit(sessions, fork.session_id) for fork in forks)),
    )


def _exchange(sessions: Sessions, session_id: str, route: DemoRoute, request: Request) -> Exchange:
    answer = None
    if request.settled_seq is not None and request.failure is None:
        row = next(sessions.log(session_id, first=request.settled_seq, last=request.settled_seq))
        answer = message_of(row)
    load = route.load([message for _seq, message in request.messages()])
    return Exchange(request, load, answer)
