"""The last common step of preparing: pictures inline, limits checked, exact bytes counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from everfold.llm.budgets import ImageBudget
from everfold.llm.route import Capabilities, Prepared
from everfold.routes.checks import check_body, check_images
from everfold.routes.limits import RouteLimits
from everfold.routes.parts import ImagePart, Turn, images_in
from everfold.routes.pictures import ImageVersions, Picture, encoded, pictures_of
from everfold.routes.rejections import Sent

_SENT = "sent"


@dataclass(frozen=True, slots=True)
class Inline:
    """A picture and its base64 text."""

    picture: Picture
    text: str


@dataclass
class Built:
    """A body, and the objects in it that hold pictures, by `ImagePart.at`."""

    body: dict[str, Any] = field(default_factory=dict)
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)

    def holding(self, image: ImagePart, block: dict[str, Any]) -> dict[str, Any]:
        """Return `block`, noted as the one that holds `image`."""
        self.blocks[image.at] = block
        return block


Builder = Callable[[Sequence[Turn], Mapping[int, Inline]], Built]
"""Gives turns their wire form; pictures come by `ImagePart.at`."""


async def prepared_inline(
    turns: Sequence[Turn],
    versions: ImageVersions,
    limits: RouteLimits,
    build: Builder,
    images: Sequence[ImagePart] | None = None,
) -> Prepared:
    """Return a request whose pictures travel in its body.

    Args:
        images: the pictures in `turns`, oldest first, if they are known already.

    Raises:
        LlmError: a limit is exceeded or a picture cannot be sent.
    """
    parts = images_in(turns) if images is None else images
    pictures = await pictures_of(parts, versions, limits.request_version)
    budget = limits.inline.budget()
    check_images([picture.sent() for picture in pictures], budget, limits)
    texts = await encoded(pictures, versions)
    inlined = {
        picture.part.at: Inline(picture, text)
        for picture, text in zip(pictures, texts, strict=True)
    }
    return prepared(build(turns, inlined), pictures, budget, limits, is_inline=True)


def prepared(
    built: Built,
    pictures: Sequence[Picture],
    budget: ImageBudget,
    limits: RouteLimits,
    is_inline: bool,
) -> Prepared:
    """Return a built request, its exact length checked.

    Raises:
        LlmError: the body is longer than the route takes.
    """
    images = tuple(picture.sent(built.blocks[picture.part.at], is_inline) for picture in pictures)
    sent = Sent(built.body, len(wire_bytes(built.body)), images, budget)
    check_body(images, sent.body_bytes, limits)
    total = sum(budget.length(image.raw_bytes) for image in images)
    return Prepared(built.body, len(images), total, {_SENT: sent})


def sent_of(request: Prepared) -> Sent:
    """Return what the refusal of a prepared request is judged by; one from a recording has no pictures."""
    sent = request.extra.get(_SENT)
    return sent if isinstance(sent, Sent) else Sent(request.body, 0, (), ImageBudget())


def wire_bytes(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a body exactly as they are sent."""
    return orjson.dumps(body)


def capabilities_of(limits: RouteLimits) -> Capabilities:
    """Return what a model takes, in the words of the contract."""
    budget = limits.files or limits.inline
    return Capabilities(
        limits.images.user,
        limits.images.tool or limits.images.user,
        limits.images.assistant,
        limits.context_window,
        limits.system_prompt_update,
        None if limits.is_text_only else budget.budget(),
    )
