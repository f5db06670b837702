"""One question to a model, from Ctrl-C to the last stored event."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from everfold.agent.agent import Agent
from everfold.agent.content import Part
from everfold.agent.results import TurnResult, read_turn
from everfold.cli.talk.telling import Teller, advice_of
from everfold.profiles.opening import OpenProfile
from everfold.session.events import Recorded
from everfold.session.frozen import Json


@dataclass(slots=True)
class Talk:
    """A session that is talked to, in one event loop.

    Ctrl-C cancels the turn that runs: it is closed in the log, then `KeyboardInterrupt` goes on.
    """

    host: OpenProfile
    agent: Agent
    runner: asyncio.Runner
    teller: Teller

    def ask(self, content: Sequence[Part]) -> TurnResult:
        """Ask, tell what happens, and return what became of it.

        Raises:
            KeyboardInterrupt: the turn was cancelled and is closed.
            OSError: nobody reads the output; the turn was cancelled and is closed.
            SessionError: the input or the session cannot be used.
        """
        leave = self.agent.watch(self.teller)
        try:
            return self.runner.run(self.agent.ask(content))
        finally:
            leave()
            self.teller.end_line()
            self.teller.raise_failure()

    def last_turn(self) -> TurnResult | None:
        """Return what became of the session's last turn, None if it had none."""
        start = self.host.sessions.load(self.agent.session_id).latest("turn/start")
        if start is None:
            return None
        return read_turn(self.host.sessions, self.agent.session_id, start.seq)


def result_record(result: TurnResult, events: Sequence[Recorded]) -> dict[str, Json]:
    """Return the outcome of a turn as JSON (docs/cli.md)."""
    usage, failure = result.usage, result.failure
    return {
        "session": result.session_id,
        "turn": result.turn,
        "finish": result.kind,
        "text": result.text,
        "usage": None if usage is None else usage.to_json(),
        "failure": None if failure is None else failure.to_json(),
        "advice": advice_of(result),
        "startSeq": result.start_seq,
        "endSeq": result.end_seq,
        "events": [event.record() for event in events],
    }


def parts_of(text: str, attachments: Sequence[Part]) -> list[Part]:
    """Return the content of a question: its text, then what goes with it."""
    return [*([text] if text else []), *attachments]


def existing(words: Sequence[str]) -> tuple[Path, ...]:
    """Return the paths that words name; a leading tilde is the home directory."""
    return tuple(Path(word).expanduser() for word in words)
