"""A conversation on its way to a provider: turns of parts, valid for every wire form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from everfold.llm.failure import ImagePlace

NOWHERE = ImagePlace("", 0)
"""The place of a picture that stands in no conversation."""

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text that is not blank."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A retained picture.

    Attributes:
        block: the image block of the message.
        at: its place among the retained pictures of the request, oldest first, from 0.
        is_omittable: whether recovery can omit it: not if a model made it (R247).
        place: where it stands in the conversation.
    """

    block: Mapping[str, Any]
    at: int
    is_omittable: bool = True
    place: ImagePlace = NOWHERE


@dataclass(frozen=True, slots=True)
class ThoughtPart:
    """Reasoning of this provider's own model; that of others is left out (K6)."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call; `arguments` is JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """The answer to a tool call, never without content."""

    id: str
    parts: tuple[TextPart | ImagePart, ...]
    is_error: bool = False


Part = TextPart | ImagePart | ThoughtPart | CallPart | AnswerPart


@dataclass(frozen=True, slots=True)
class Turn:
    """Parts of one role, in order, at least one.

    A `tool` turn holds the answers to every call of the assistant turn before it, in their order.

    Attributes:
        replay_state: of an assistant turn: what the provider wants back, if it is from the same
            provider and model; None otherwise.
        block_indexes: of an assistant turn: which block of the stored message each part was.
    """

    role: Role
    parts: tuple[Part, ...]
    replay_state: Mapping[str, Any] | None = None
    block_indexes: tuple[int, ...] = ()


def images_in(turns: Sequence[Turn]) -> list[ImagePart]:
    """Return the pictures of a request in the order of the messages, oldest first."""
    found: list[ImagePart] = []
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, ImagePart):
                found.append(part)
            elif isinstance(part, AnswerPart):
                found.extend(inner for inner in part.parts if isinstance(inner, ImagePart))
    return sorted(found, key=lambda image: image.at)
