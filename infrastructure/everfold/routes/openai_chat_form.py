"""Gives turns the form of chat completions' messages."""

from collections.abc import Sequence
from typing import Any, Literal

from everfold.routes.pairing import arguments_text
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, TextPart, ThoughtPart, Turn
from everfold.routes.written import Items, ShowImage

Json = dict[str, Any]
FAILED = "[The call failed:]"


class ChatForm:
    """A `Form` of messages, one or more for each turn.

    Args:
        reasoning_back: the field in which own reasoning is sent back; None to leave it out.
    """

    lifts_prompt = False

    def __init__(self, reasoning_back: Literal["reasoning_content", "reasoning"] | None) -> None:
        self._reasoning_back = reasoning_back

    def closes(self, turn: Turn) -> bool:  # noqa: ARG002  # no turn changes another's messages
        """As `Form.closes`."""
        return True

    def write(self, turns: Sequence[Turn], show: ShowImage, *, is_first: bool) -> Items:  # noqa: ARG002  # it makes no difference here
        """As `Form.write`."""
        return [message for turn in turns for message in self._messages(turn, show)]

    def _messages(self, turn: Turn, show: ShowImage) -> Items:
        if turn.role == "tool":
            return [_answer(part, show) for part in turn.parts if isinstance(part, AnswerPart)]
        if turn.role == "assistant":
            return [self._assistant(turn, show)]
        return [{"role": turn.role, "content": _content(turn.parts, show)}]

    def _assistant(self, turn: Turn, show: ShowImage) -> Json:
        calls = [part for part in turn.parts if isinstance(part, CallPart)]
        said = [part for part in turn.parts if isinstance(part, (TextPart, ImagePart))]
        message: Json = {"role": "assistant", "content": _content(said, show) if said else None}
        thoughts = [part.text for part in turn.parts if isinstance(part, ThoughtPart)]
        if thoughts and self._reasoning_back is not None:
            message[self._reasoning_back] = "".join(thoughts)
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
        return message


def _answer(answer: AnswerPart, show: ShowImage) -> Json:
    parts = (TextPart(FAILED), *answer.parts) if answer.is_error else answer.parts
    return {"role": "tool", "tool_call_id": answer.id, "content": _content(parts, show)}


def _content(parts: Sequence[object], show: ShowImage) -> str | Items:
    """Return text alone as text, which every server takes; with pictures a list of parts."""
    if not any(isinstance(part, ImagePart) for part in parts):
        return "\n\n".join(part.text for part in parts if isinstance(part, TextPart))
    return [
        show(part) if isinstance(part, ImagePart) else {"type": "text", "text": part.text}
        for part in parts
        if isinstance(part, (TextPart, ImagePart))
    ]


def _call(call: CallPart) -> Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_text(call)},
    }
