"""Content from users and tools on its way into the log: admitted, mended, shortened where it must be."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from everfold.agent.drawings import drawn
from everfold.agent.errors import InputError
from everfold.agent.tools import ImageData, ToolOutput
from everfold.llm.wellformed import Repair, mended
from everfold.session.frozen import Json

AdmitImages = Callable[[Sequence[ImageData]], Sequence[Mapping[str, Json]]]
"""Stores images, all or none, and returns their references; may block.

What it raises is told to the model, or to the user whose image it was; its text is for them.
"""

Part = str | ImageData | Mapping[str, Json]
"""A text, an image's bytes, or a content block."""

NO_OUTPUT = "(no output)"
_BLOCKS = ("text", "image", "file")


@dataclass(frozen=True, slots=True)
class Content:
    """Blocks that the log can hold, and what was mended in them."""

    blocks: tuple[Json, ...]
    repairs: tuple[Repair, ...] = ()


def content_of(parts: Sequence[Part], admit: AdmitImages | None) -> Content:
    """Return the blocks of parts; images are admitted as one batch.

    Raises:
        InputError: a part is no content, or this agent keeps no images.
        Exception: what the admission raised.
    """
    images = [part for part in parts if isinstance(part, ImageData)]
    if images and admit is None:
        raise InputError("this agent has no store for images; open it with admit_images=…")
    references = iter(admit(images) if images and admit is not None else ())
    blocks = [_block(part, references_next=lambda: next(references)) for part in parts]
    clean, repairs = mended([block for block in blocks if not _is_empty(block)], "content")
    return Content(tuple(clean), repairs)


def _block(part: Part, references_next: Callable[[], Mapping[str, Json]]) -> Json:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, ImageData):
        return {"type": "image", "attachment": dict(references_next())}
    fault = _fault(part)
    if fault is not None:
        raise InputError(f"{part!r:.200} is no content block: {fault}")
    return dict(part)


def _fault(block: object) -> str | None:
    if not isinstance(block, Mapping):
        return f"it is {type(block).__name__}, not text, image data or an object"
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        return "it has no type"
    if kind == "text" and not isinstance(block.get("text"), str):
        return "its text is not text"
    if kind in ("tool-call", "tool-result", "reasoning"):
        return f"a {kind} comes from a model or from a call, never from here"
    if kind in ("image", "file") and not isinstance(block.get("attachment"), Mapping):
        return "it refers to no attachment"
    return None


def _is_empty(block: Json) -> bool:
    return bool(block["type"] == "text" and block["text"] == "")


class ToolResultError(ValueError):
    """What a tool returned can be told to no model; the message is for the model."""


def parts_of(value: object) -> tuple[Part, ...]:
    """Return the parts of what a tool returned; anything that is no content becomes JSON text.

    Raises:
        ToolResultError: something in it has no JSON form.
    """
    if value is None:
        return ()
    if isinstance(value, ToolOutput):
        several = (value.content,) if isinstance(value.content, str) else tuple(value.content)
        return tuple(drawn(part) for part in several)
    if isinstance(value, (list, tuple)):
        items = tuple(drawn(item) for item in value)
        return items if _is_content(items) else (_json_text(value),)
    part = drawn(value)
    return (part,) if isinstance(part, str) or _is_block(part) else (_json_text(part),)


def _json_text(value: object) -> str:
    """Return a value as JSON text; what is no valid Unicode in it is left to `mended`."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        plain = to_jsonable_python(value, inf_nan_mode="constants")
    except (ValueError, TypeError) as error:
        kind = type(value).__name__
        raise ToolResultError(
            f"the tool returned {kind}, which has no JSON form: {error}"
        ) from error
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _is_content(items: Sequence[object]) -> bool:
    """Tell whether a list is content; a list of texts alone is a value like any other."""
    has_blocks = any(not isinstance(item, str) for item in items)
    return has_blocks and all(isinstance(item, str) or _is_block(item) for item in items)


def _is_block(item: object) -> bool:
    if isinstance(item, ImageData):
        return True
    return isinstance(item, Mapping) and item.get("type") in _BLOCKS


def shortened(content: Content, limit: int) -> Content:
    """Return content whose text is at most about `limit` characters; the middle of long texts goes."""
    total = sum(len(block["text"]) for block in content.blocks if block.get("type") == "text")
    if total <= limit:
        return content
    share = limit / total
    blocks = tuple(
        {**block, "text": _cut(block["text"], int(len(block["text"]) * share))}
        if block.get("type") == "text"
        else block
        for block in content.blocks
    )
    return Content(blocks, content.repairs)


def _cut(text: str, keep: int) -> str:
    if len(text) <= keep:
        return text
    head = keep * 3 // 4
    tail = keep - head
    gone = len(text) - keep
    return f"{text[:head]}\n[… {gone} characters left out …]\n{text[len(text) - tail :]}"
