"""What a caller who follows a turn is given: pieces of answers, and stored events."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from everfold.llm.chunks import Chunk
from everfold.session.events import Recorded


@dataclass(frozen=True, slots=True)
class Live:
    """A piece of an answer, while it arrives; it is not stored and has no seq (M3)."""

    turn: int
    step: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Stored:
    """An event that is stored; a reader that lost its place goes on after its seq."""

    event: Recorded


@dataclass(frozen=True, slots=True)
class Queueing:
    """A watcher that hands everything to an iteration."""

    items: "asyncio.Queue[Live | Stored | None]"

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        """Hand on a piece of an answer."""
        self.items.put_nowait(Live(turn, step, chunk))

    def on_events(self, events: Sequence[Recorded]) -> None:
        """Hand on what was stored."""
        for event in events:
            self.items.put_nowait(Stored(event))
