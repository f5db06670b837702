"""An agent is killed at random moments; `EVERFOLD_CRASHES` says how often on each database."""

import contextlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.kit import Host, hosting, run
from tests.crash.talking import MODEL, Calling, Deeds, chat_route, check_sound, talk_for_ever
from tests.processes import PATIENCE_S, Worker
from tests.providers.rules import Violation
from tests.providers.strict_fake import StrictFake, strict_fake

CRASHES = int(os.environ.get("EVERFOLD_CRASHES", "12"))
LONGEST_LIFE_S = 0.8
LIVES_OF_A_SESSION = 12
"""So many processes run one session, one after another, before the next session is begun."""

Told = set[tuple[int, str]]


@pytest.fixture
def any_host(store_url: str) -> Iterator[Host]:
    """A host on an empty store of each kind."""
    with hosting(store_url) as host:
        yield host


@pytest.fixture
def fake() -> Iterator[StrictFake]:
    """A strict provider on loopback, whose answers take their time."""
    with strict_fake() as running:
        running.answering = Calling()
        yield running


def killed_after(worker: Worker[None], life_s: float) -> Told:
    """Kill a worker that long after it has begun; return what it had told."""
    assert worker.pipe.poll(PATIENCE_S), "the agent never began"
    told = received(worker)
    moment = time.monotonic() + life_s
    while (left := moment - time.monotonic()) > 0:
        if worker.pipe.poll(left):
            told |= received(worker)
    worker.process.kill()
    worker.process.join(PATIENCE_S)
    with contextlib.suppress(EOFError, OSError):
        while True:
            told |= received(worker)
    return told


def received(worker: Worker[None]) -> Told:
    """Return the next report; an agent that stops before it is killed is a failure."""
    report = worker.pipe.recv()
    assert isinstance(report, list), f"the agent ended by itself: {report}"
    return set(report)


def refused(fake: StrictFake) -> list[Violation]:
    """Return the rules that requests broke; one whose sender was killed amid it breaks none."""
    return [call.violation for call in fake.calls if call.violation and call.seen is not None]


def test_killed_agents_lose_nothing_that_was_told_and_repeat_no_tool(
    any_host: Host, fake: StrictFake, tmp_path: Path
) -> None:
    choice, deeds = random.Random(20_261_130), Deeds(tmp_path / "deeds")
    sessions = [any_host.new_session() for _ in range(-(-CRASHES // LIVES_OF_A_SESSION))]
    told: dict[str, Told] = {session_id: set() for session_id in sessions}

    for number in range(CRASHES):
        session_id = sessions[number // LIVES_OF_A_SESSION]
        arguments = (any_host.url, fake.base_url, session_id, tmp_path, number)
        worker = Worker(talk_for_ever, *arguments, reports=True)
        told[session_id] |= killed_after(worker, choice.uniform(0, LONGEST_LIFE_S))
        assert refused(fake) == []
        fake.calls.clear()

    ends: list[str] = []
    for session_id, events in told.items():
        route = chat_route(fake.base_url, tmp_path)
        agent = any_host.agent(route, session_id, takes_over=True, tools=[deeds.note], model=MODEL)
        assert run(agent.ask("and now?")).text.startswith("Both are noted.")
        check_sound(any_host, session_id, events, deeds)
        ends += [data["reason"]["kind"] for data in any_host.data(session_id, "turn/end")]
    assert {"interrupted", "completed"} <= set(ends)
