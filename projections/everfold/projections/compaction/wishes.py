"""The events of a compaction, as wishes (R279, R281, R282)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everfold.session.deciding import AppendEvent, replacement
from everfold.session.frozen import Json

PLUGIN = "compact"
"""The name in the source of messages that hold a summary."""

START, SUMMARY, END = "compaction/start", "compaction/summary", "compaction/end"
SKIPPED = "compaction/skipped"
"""Log-only and ignorable: says why a conversation under pressure was not summarised (D6)."""
REQUEST = "compaction/request"
"""Log-only and ignorable: says what a summary request was made of, before it is sent."""
RETRY = "compaction/retry"
"""Log-only and ignorable: says that a summary request failed and is sent again after a pause."""

OPENING = (
    "<conversation-summary>\n"
    "The earlier part of this conversation is no longer shown. This summary stands for it:"
)
CLOSING = "</conversation-summary>"


def framed(summary: Sequence[Json]) -> list[Json]:
    """Return the content of the message that takes the place of the summarised ones (R282)."""
    return [{"type": "text", "text": OPENING}, *summary, {"type": "text", "text": CLOSING}]


@dataclass(frozen=True, slots=True)
class Names:
    """What ties the events of one compaction together.

    Attributes:
        command_id: the command that asked for it, None if none did.
    """

    compaction_id: str
    command_id: str | None = None

    def fields(self) -> dict[str, Json]:
        """Return them with the wire's field names."""
        fields: dict[str, Json] = {"compactionId": self.compaction_id}
        return fields if self.command_id is None else {**fields, "sourceCommandId": self.command_id}


def start(names: Names, turn: Json) -> AppendEvent:
    """Return the wish to lock the session for a compaction (R280)."""
    return AppendEvent(START, {**names.fields(), "turn": turn})


def end(names: Names, turn: Json, error: str | None = None) -> AppendEvent:
    """Return the wish to free it."""
    data = {**names.fields(), "turn": turn}
    return AppendEvent(END, data if error is None else {**data, "error": error})


def summary(
    names: Names, seqs: Sequence[int], fixed_price: int, facts: Mapping[str, Any]
) -> AppendEvent:
    """Return the wish to log a summary, with the price of what it hides (R309)."""
    covered = {
        "shadowedRange": {"start": seqs[0], "end": seqs[-1]},
        "shadowedSeqs": list(seqs),
        "shadowedTokenCount": fixed_price,
    }
    return AppendEvent(SUMMARY, {**names.fields(), **covered, **facts})


def checkpoint(
    names: Names, message_id: str, content: Sequence[Json], seqs: Sequence[int], cited: list[int]
) -> AppendEvent:
    """Return the wish to put a framed summary in the place of nodes.

    Args:
        cited: the seqs of start and summary.
    """
    message = {
        "id": message_id,
        "role": "user",
        "content": list(content),
        "source": {"kind": "plugin", "plugin": PLUGIN, **names.fields()},
    }
    sources = sorted({*cited, *seqs})
    return replacement("user/message", message, start=seqs[0], end=seqs[-1], sources=sources)


def request(facts: Mapping[str, Json]) -> AppendEvent:
    """Return the wish to log what a summary request is made of."""
    return AppendEvent(REQUEST, dict(facts), {"ignorable": True})


def retry(names: Names, facts: Mapping[str, Json]) -> AppendEvent:
    """Return the wish to log that a summary request is to be sent again."""
    return AppendEvent(RETRY, {**names.fields(), **facts}, {"ignorable": True})


def skipped(turn: Json, trigger: str, reason: str, tokens: int, window: int) -> AppendEvent:
    """Return the wish to log why nothing was summarised."""
    data = {
        "turn": turn,
        "trigger": trigger,
        "reason": reason,
        "tokens": tokens,
        "contextWindow": window,
    }
    return AppendEvent(SKIPPED, data, {"ignorable": True})
