"""The events that the loop appends, as wishes (field reference, section 3)."""

from collections.abc import Mapping, Sequence

from everfold.llm.failure import LlmFailure
from everfold.llm.wellformed import Repair
from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json

PROMPT_PLUGIN = "system-prompt"
REPAIRED = "content/repaired"
"""Log-only and ignorable: says what was mended at the edge, so that the log could hold it."""


def turn_start(turn: int) -> AppendEvent:
    """Return the wish to open a turn."""
    return AppendEvent("turn/start", {"turn": turn})


def turn_end(turn: int, reason: Mapping[str, Json]) -> AppendEvent:
    """Return the wish to close a turn."""
    return AppendEvent("turn/end", {"turn": turn, "reason": dict(reason)})


def step_start(turn: int, step: int) -> AppendEvent:
    """Return the wish to open a step."""
    return AppendEvent("step/start", {"turn": turn, "step": step})


def step_end(turn: int, step: int) -> AppendEvent:
    """Return the wish to close a step."""
    return AppendEvent("step/end", {"turn": turn, "step": step})


def error_reason(failure: LlmFailure) -> dict[str, Json]:
    """Return the reason of a turn that failed."""
    return {"kind": "error", "error": failure.to_json()}


def user_message(
    message_id: str, content: Sequence[Json], source: Mapping[str, Json]
) -> dict[str, Json]:
    """Return a message of the user's role."""
    return {"id": message_id, "role": "user", "content": list(content), "source": dict(source)}


def system_data(turn: int, step: int, message_id: str, text: str) -> dict[str, Json]:
    """Return the data of a `system/message`; empty text gives empty content."""
    body = {
        "id": message_id,
        "role": "system",
        "content": [{"type": "text", "text": text}] if text else [],
        "source": {"kind": "plugin", "plugin": PROMPT_PLUGIN},
    }
    return {"turn": turn, "step": step, "message": body}


def assistant_message(
    place: Mapping[str, int], body: Mapping[str, Json], facts: Mapping[str, Json]
) -> AppendEvent:
    """Return the wish to settle a step by an answer.

    Args:
        place: turn and step.
        body: the message.
        facts: `stream`, and `usage` and `interrupted` where they apply.
    """
    return message("assistant/message", {**place, "message": dict(body), **facts})


def tool_call(place: Mapping[str, int], block: Mapping[str, Json]) -> AppendEvent:
    """Return the wish to log that a tool is about to be called."""
    call = {"callId": block["id"], "name": block["name"], "arguments": block["arguments"]}
    return AppendEvent("tool/call", {**place, **call})


def repaired(place: Mapping[str, int], what: str, repairs: Sequence[Repair]) -> list[AppendEvent]:
    """Return the wish to log what was mended in a message, none if nothing was.

    Args:
        what: the id of the message.
    """
    if not repairs:
        return []
    places = [repair.to_json() for repair in repairs]
    data = {**place, "messageId": what, "places": places}
    return [AppendEvent(REPAIRED, data, {"ignorable": True})]
