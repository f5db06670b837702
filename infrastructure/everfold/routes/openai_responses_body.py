"""Writes the body of a Responses request."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from everfold.llm.route import LlmRequest
from everfold.routes.incremental import Projected
from everfold.routes.pairing import arguments_text
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, TextPart, ThoughtPart, Turn
from everfold.routes.preparing import Built

Json = dict[str, Any]
ImageSource = Callable[[ImagePart], Json]
"""Gives what names a picture: `{"file_id": …}` or `{"image_url": …}`."""

FAILED = "[The call failed:]"


def responses_body(request: LlmRequest, projected: Projected, source: ImageSource) -> Built:
    """Return the body of a request; nothing is stored at the provider, reasoning comes encrypted."""
    built = Built()
    instructions = _instructions(projected.turns)
    config = request.config
    body: Json = {"model": config["model"]}
    if instructions is not None:
        body["instructions"] = instructions
    body["input"] = projected.items(
        lambda turn: list(_items(turn, source, built)), since=0 if instructions is None else 1
    )
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
    built.body = body
    return built


def _instructions(turns: Sequence[Turn]) -> str | None:
    """Return the system prompt that opens a conversation."""
    return _text(turns[0].parts) if turns and turns[0].role == "system" else None


def _items(turn: Turn, source: ImageSource, built: Built) -> Iterator[Json]:
    if turn.role == "assistant":
        yield from _assistant_items(turn)
        return
    if turn.role == "tool":
        for part in turn.parts:
            if isinstance(part, AnswerPart):
                yield _answer(part, source, built)
        return
    role = "developer" if turn.role == "system" else turn.role
    yield {"type": "message", "role": role, "content": _content(turn.parts, source, built)}


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


def _answer(answer: AnswerPart, source: ImageSource, built: Built) -> Json:
    parts = (TextPart(FAILED), *answer.parts) if answer.is_error else answer.parts
    has_images = any(isinstance(part, ImagePart) for part in parts)
    output = _content(parts, source, built) if has_images else _text(parts)
    return {"type": "function_call_output", "call_id": answer.id, "output": output}


def _content(parts: Sequence[object], source: ImageSource, built: Built) -> list[Json]:
    content: list[Json] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "input_text", "text": part.text})
        elif isinstance(part, ImagePart):
            block = {"type": "input_image", "detail": "auto", **source(part)}
            content.append(built.holding(part, block))
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
