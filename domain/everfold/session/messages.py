"""Typed views of messages and content blocks, made of what the log holds when somebody asks.

The log does not inspect single blocks (R28), so a view never refuses: a block of an unknown type,
or of a known type without its fields, is an `UnknownBlock` that holds it as it is. Further fields of
known blocks are kept as extras. `to_json` gives back what the view was made of.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from everfold.session.frozen import Json, thaw


class View(BaseModel):
    """An immutable view with the wire's field names in snake case; unknown fields are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, strict=True)

    def to_json(self) -> Json:
        """Return the JSON that the view was made of, with the wire's field names."""
        known = self.model_fields_set & type(self).model_fields.keys()
        given = {to_camel(name): getattr(self, name) for name in known}
        given.update(self.model_extra or {})
        return {name: _json(value) for name, value in given.items()}


class Dimensions(View):
    """Width and height in pixels."""

    width: int
    height: int


class ImageAttachment(View):
    """A stored image: `attachment_id` is `sha256:` and 64 hex digits, `bytes` its stored size."""

    attachment_id: str
    media_type: str
    bytes: int
    width: int
    height: int
    name: str | None = None
    original_dimensions: Dimensions | None = None


class FileAttachment(View):
    """A stored file, kept verbatim."""

    attachment_id: str
    name: str
    bytes: int


class TextBlock(View):
    """Words."""

    type: Literal["text"] = "text"
    text: str


class ReasoningBlock(View):
    """What a model thought before it answered."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class ImageBlock(View):
    """One occurrence of an image; `offloaded` when it is omitted from what the model sees."""

    type: Literal["image"] = "image"
    attachment: ImageAttachment
    offloaded: bool = False


class FileBlock(View):
    """A file that is sent as a handle."""

    type: Literal["file"] = "file"
    attachment: FileAttachment


class ToolCallBlock(View):
    """A call that a model asks for; `arguments` is JSON text as the model wrote it."""

    type: Literal["tool-call"] = "tool-call"
    id: str
    name: str
    arguments: str


class ToolResultBlock(View):
    """What a call gave; its content may hold images, and further results."""

    type: Literal["tool-result"] = "tool-result"
    tool_call_id: str
    content: tuple["Block", ...]
    is_error: bool = False


class UnknownBlock(View):
    """A block that is none of the others, as it is."""

    type: Literal["unknown"] = "unknown"
    value: Any

    def to_json(self) -> Json:
        """Return the block itself, which need not be an object."""
        return thaw(self.value)


Block = (
    TextBlock
    | ReasoningBlock
    | ImageBlock
    | FileBlock
    | ToolCallBlock
    | ToolResultBlock
    | UnknownBlock
)


class Source(View):
    """Where a message came from; further fields depend on the kind and are kept as extras."""

    kind: str


class Message(View):
    """A message as the model sees it, or as it was stored."""

    id: str
    role: Literal["system", "user", "assistant"]
    content: tuple[Block, ...]
    source: Source

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


_KINDS: dict[str, type[View]] = {
    "text": TextBlock,
    "reasoning": ReasoningBlock,
    "image": ImageBlock,
    "file": FileBlock,
    "tool-call": ToolCallBlock,
    "tool-result": ToolResultBlock,
}


def typed_message(message: Json) -> Message:
    """Return the view of a message that a session gave."""
    fields = {**message, "content": tuple(typed_block(block) for block in message["content"])}
    return Message.model_validate(fields)


def typed_block(block: Json) -> Block:
    """Return the view of a content block; never refuses."""
    kind = _KINDS.get(block.get("type", "")) if isinstance(block, dict) else None
    if kind is None:
        return UnknownBlock(value=block)
    fields = dict(block)
    if kind is ToolResultBlock and isinstance(fields.get("content"), list):
        fields["content"] = tuple(typed_block(inner) for inner in fields["content"])
    try:
        view: Any = kind.model_validate(fields)
    except ValidationError:
        return UnknownBlock(value=block)
    return view  # type: ignore[no-any-return]  # each kind in the table is a Block


def _json(value: object) -> Json:
    if isinstance(value, View):
        return value.to_json()
    return [_json(item) for item in value] if isinstance(value, tuple) else thaw(value)
