"""Writes the body of a Responses request."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from everfold.llm.route import LlmRequest
from everfold.routes.incremental import Listing, Projected
from everfold.routes.pairing import arguments_text
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, TextPart, ThoughtPart, Turn
from everfold.routes.preparing import Built, Shown
from everfold.routes.wire import LISTED
from everfold.routes.written import Items, ShowImage

Json = dict[str, Any]
ImageSource = Callable[[ImagePart], Json]
"""Gives what names a picture: `{"file_id": …}` or `{"image_url": …}`."""

FAILED = "[The call failed:]"


class ResponsesForm:
    """A `Form` of input items, any number for each turn; the prompt is the body's `instructions`."""

    lifts_prompt = True

    def closes(self, turn: Turn) -> bool:  # noqa: ARG002  # no turn changes another's items
        """As `Form.closes`."""
        return True

    def write(self, turns: Sequence[Turn], show: ShowImage, *, is_first: bool) -> Items:  # noqa: ARG002  # it makes no difference here
        """As `Form.write`."""
        return [item for turn in turns for item in _items(turn, show)]


def responses_body(request: LlmRequest, projected: Projected, source: ImageSource) -> Built:
    """Return the body of a request; nothing is stored at the provider, reasoning comes encrypted."""
    shown = Shown(lambda image: {"type": "input_image", "detail": "auto", **source(image)})
    config = request.config
    body: Json = {"model": config["model"]}
    if projected.prompt is not None:
        body["instructions"] = _text(projected.prompt.parts)
    body["input"] = LISTED
    if request.header.get("tools"):
        body["tools"] = [
            {"type": "function", **tool, "strict": False} for tool in request.header["tools"]
        ]
    if "maxTokens" in config:
        body["max_output_tokens"] = config["maxTokens"]
    if "temperature" in config:
        body["temperature"] = config["temperature"]
    if "reasoningEffort" in config:
        body["reasoning"] = {"effort": config["reasoningEffort"], "summary": "auto"}
    if request.session_id:
        body["prompt_cache_key"] = request.session_id
    body |= {"include": ["reasoning.encrypted_content"], "store": False, "stream": True}
    return Built(body, Listing(projected, shown), shown.blocks)


def _items(turn: Turn, show: ShowImage) -> Iterator[Json]:
    if turn.role == "assistant":
        yield from _assistant_items(turn)
        return
    if turn.role == "tool":
        for part in turn.parts:
            if isinstance(part, AnswerPart):
                yield _answer(part, show)
        return
    role = "developer" if turn.role == "system" else turn.role
    yield {"type": "message", "role": role, "content": _content(turn.parts, show)}


def _assistant_items(turn: Turn) -> Iterator[Json]:
    states: Sequence[Json | None] = (turn.replay_state or {}).get("blocks") or ()
    for part, index in zip(turn.parts, _indexes(turn), strict=True):
        match part:
            case ThoughtPart():
                state = states[index] if 0 <= index < len(states) else None
                if state is not None and state.get("encrypted_content"):
                    yield {**state}
            case TextPart(text=text):
                content = [{"type": "output_text", "text": text}]
                yield {"type": "message", "role": "assistant", "content": content}
            case CallPart():
                call = {"call_id": part.id, "name": part.name, "arguments": arguments_text(part)}
                yield {"type": "function_call", **call}


def _indexes(turn: Turn) -> Sequence[int]:
    """Return the stored place of each part; turns that were rewritten have none."""
    known = len(turn.block_indexes) == len(turn.parts)
    return turn.block_indexes if known else [-1] * len(turn.parts)


def _answer(answer: AnswerPart, show: ShowImage) -> Json:
    parts = (TextPart(FAILED), *answer.parts) if answer.is_error else answer.parts
    has_images = any(isinstance(part, ImagePart) for part in parts)
    output = _content(parts, show) if has_images else _text(parts)
    return {"type": "function_call_output", "call_id": answer.id, "output": output}


def _content(parts: Sequence[object], show: ShowImage) -> Items:
    content: Items = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "input_text", "text": part.text})
        elif isinstance(part, ImagePart):
            content.append(show(part))
    return content


def _text(parts: Sequence[object]) -> str:
    return "\n\n".join(part.text for part in parts if isinstance(part, TextPart))


def file_ids(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the uploaded files that a body refers to."""
    for item in body.get("input", ()):
        for key in ("content", "output"):
            for part in item.get(key) or ():
                if isinstance(part, Mapping) and isinstance(part.get("file_id"), str):
                    yield part["file_id"]
