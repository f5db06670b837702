"""How many of the oldest pictures must go: counts are of pictures that recovery can omit (V7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everfold.llm.budgets import (
    ImageBudget,
    UnavoidableExcessError,
    required_beside,
    required_offload,
)
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.placeholders import quoted
from everfold.routes.parts import ImagePart
from everfold.routes.text_only import attachment_of


@dataclass(frozen=True, slots=True)
class SentImage:
    """A retained picture of a request, as it is sent.

    Attributes:
        raw_bytes: of the request version; `encoded_bytes` in base64, 0 if it travels by reference.
        edge: pixels of its longer side.
        is_omittable: whether recovery can omit it.
        block: the object of the body that holds it, if there is a body.
        part: what it is in the conversation.
    """

    raw_bytes: int
    encoded_bytes: int
    edge: int
    is_omittable: bool = True
    block: dict[str, Any] | None = None
    part: ImagePart | None = None


Images = Sequence[SentImage]
"""The retained pictures of a request, oldest first."""

SHORTEST_LIMIT = 100_000
"""No server is known that takes fewer bytes: no picture of a shorter request is why it is refused."""

_MOST_NAMED = 5
_SHOWN_ID = len("sha256:") + 8
_SHARE = 4
"""Pictures that are less than one part in so many of a request are not what makes it too large."""


def offload_required(message: str, count: int) -> LlmError:
    """Return the failure that asks to omit `count` more of the oldest pictures (R251)."""
    oldest = "oldest picture" if count == 1 else f"{count} oldest pictures"
    text = f"{message}; the {oldest} must be omitted"
    code = FailureCode.IMAGE_OFFLOAD_REQUIRED
    return LlmError(LlmFailure(text, code, offload_images=count))


def beyond_omission(message: str) -> LlmError:
    """Return the failure of a request that would be too large without any picture that can go (V7)."""
    text = f"{message}; omitting pictures cannot help, compact the session"
    return LlmError(LlmFailure(text, FailureCode.CONTEXT_WINDOW_EXCEEDED))


def too_short(message: str, body_bytes: int) -> LlmError:
    """Return the failure of a request whose pictures are too small to be why it is too large.

    It is that of a request without pictures: a compaction is tried, and every picture stays.
    """
    text = (
        f"{message}; no server is known that takes less than its {body_bytes} bytes, so pictures are "
        "hardly the reason and none was omitted; compact the session, or omit some yourself"
    )
    return LlmError(LlmFailure(text, FailureCode.CONTEXT_WINDOW_EXCEEDED))


def naming(failure: LlmFailure, refused: Images) -> LlmFailure:
    """Return a failure that says which pictures a provider refuses for themselves."""
    parts = [image.part for image in refused if image.part is not None]
    if not parts:
        return failure
    shown = ", ".join(_shown(part.block) for part in parts[:_MOST_NAMED])
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    places = tuple(part.place for part in parts)
    return replace(failure, message=f"{failure.message}; refused: {shown}{more}", at_fault=places)


def suspecting(failure: LlmFailure, images: Images) -> LlmFailure:
    """Return a failure that says that one of these pictures is refused, and not which one."""
    places = tuple(image.part.place for image in images if image.part is not None)
    return replace(failure, suspects=places)


def _shown(block: Mapping[str, Any]) -> str:
    """Return how an image block is named to people: its name, and the beginning of its id."""
    attachment = attachment_of(block)
    name, id_ = attachment.get("name"), str(attachment.get("attachmentId", "unknown"))[:_SHOWN_ID]
    return f"{quoted(name)} ({id_})" if isinstance(name, str) and name else f"image {id_}"


def omittable(images: Images) -> int:
    """Return how many pictures recovery can omit."""
    return sum(image.is_omittable for image in images)


def for_budget(images: Images, budget: ImageBudget) -> int | None:
    """Return how many must go to meet a budget; None if those that stay exceed it alone (V7)."""
    removable = [image.raw_bytes for image in images if image.is_omittable]
    fixed = [image.raw_bytes for image in images if not image.is_omittable]
    try:
        return required_beside(removable, fixed, budget)
    except UnavoidableExcessError:
        return None


def for_body(images: Images, body_bytes: int, limit: int, quantum: int) -> int | None:
    """Return how many must go until a body of `body_bytes` fits; None if no omission can do it.

    What replaces a picture is text of its own; the quantum leaves room for it.
    """
    encoded = [image.encoded_bytes for image in images if image.is_omittable]
    others = body_bytes - sum(encoded)
    if body_bytes <= limit:
        return 0
    if others > limit:
        return None
    return required_offload(
        encoded, ImageBudget("raw", limit - others, byte_quantum=max(1, min(quantum, limit)))
    )


def through(images: Images, is_at_fault: Callable[[SentImage], bool]) -> int | None:
    """Return how many must go until none at fault is left: the newest of them and all older ones.

    0 if none is at fault; None if one of those cannot be omitted.
    """
    found = [place for place, image in enumerate(images) if is_at_fault(image)]
    if not found:
        return 0
    if not all(images[place].is_omittable for place in found):
        return None
    return omittable(images[: found[-1] + 1])


def half(images: Images) -> int:
    """Return half of the pictures that can go, rounded up: the step of a blind search."""
    return -(-omittable(images) // 2)


def half_of_bytes(images: Images) -> int:
    """Return how many must go until half of their encoded bytes are gone."""
    encoded = [_weight(image) for image in images if image.is_omittable]
    return required_offload(encoded, ImageBudget("raw", sum(encoded) // 2))


def for_unsaid_limit(images: Images, body_bytes: int) -> int | None:
    """Return how many must go when a server refuses a body as too large and does not say the limit.

    Half of their bytes, as long as they can be the reason; None if they cannot, so that a refusal
    for ever does not take every picture from a conversation.
    """
    weight = sum(_weight(image) for image in images if image.is_omittable)
    if weight * _SHARE < total_bytes(images, body_bytes):
        return None
    return half_of_bytes(images)


def total_bytes(images: Images, body_bytes: int) -> int:
    """Return what a request takes: its body, and the pictures that it refers to."""
    return body_bytes + sum(image.raw_bytes for image in images if not image.encoded_bytes)


def _weight(image: SentImage) -> int:
    """Return what a picture takes of a request, in its body or beside it."""
    return image.encoded_bytes or image.raw_bytes
