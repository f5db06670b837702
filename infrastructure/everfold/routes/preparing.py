"""The last common step of preparing: pictures inline, limits checked, exact bytes counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from everfold.llm.budgets import ImageBudget
from everfold.llm.route import Capabilities, Prepared
from everfold.routes.checks import check_body, check_images
from everfold.routes.incremental import Listing
from everfold.routes.limits import RouteLimits
from everfold.routes.parts import ImagePart
from everfold.routes.pictures import ImageVersions, Picture, encoded, pictures_of
from everfold.routes.rejections import Sent
from everfold.routes.wire import LISTED, Wire, wire_of

Json = dict[str, Any]
_OUTGOING = "outgoing"


@dataclass(frozen=True, slots=True)
class Inline:
    """A picture and its base64 text."""

    picture: Picture
    text: str


Inlined = Mapping[int, Inline]
"""The pictures that travel in a body, by `ImagePart.at`."""


@dataclass
class Shown:
    """The objects of a body that hold pictures, by `ImagePart.at`; a `ShowImage`."""

    block_of: Callable[[ImagePart], Json]
    blocks: dict[int, Json] = field(default_factory=dict)

    def __call__(self, image: ImagePart) -> Json:
        """Return the object that stands for a picture, and take note of it."""
        block = self.blocks[image.at] = self.block_of(image)
        return block


@dataclass
class Built:
    """A body: its fields, and apart from them its one long list.

    Attributes:
        fields: hold LISTED where the list stands.
        listing: complete; nobody changes its tail any more.
        blocks: the objects in the list that hold pictures, by `ImagePart.at`.
    """

    fields: Json
    listing: Listing
    blocks: Mapping[int, Json]

    @cached_property
    def wire(self) -> Wire:
        """The body's bytes."""
        return wire_of(self.fields, self.listing.pieces())

    @cached_property
    def body(self) -> Json:
        """The body itself; costs the whole history."""
        return {
            name: self.listing.items() if value is LISTED else value
            for name, value in self.fields.items()
        }


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What sending needs to know of a prepared request."""

    sent: Sent
    wire: Wire
    limits: RouteLimits


async def prepared_inline(
    images: Sequence[ImagePart],
    versions: ImageVersions,
    limits: RouteLimits,
    build: Callable[[Inlined], Built],
) -> Prepared:
    """Return a request whose pictures travel in its body.

    Args:
        images: the pictures of the request, oldest first.

    Raises:
        LlmError: a limit is exceeded or a picture cannot be sent.
    """
    pictures = await pictures_of(images, versions, limits.request_version)
    budget = limits.inline.budget()
    check_images([picture.sent() for picture in pictures], budget, limits)
    texts = await encoded(pictures, versions)
    inlined = {
        picture.part.at: Inline(picture, text)
        for picture, text in zip(pictures, texts, strict=True)
    }
    return prepared(build(inlined), pictures, budget, limits, is_inline=True)


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
    sent = Sent(lambda: built.body, built.wire.size, images, budget)
    check_body(images, sent.body_bytes, limits)
    total = sum(budget.length(image.raw_bytes) for image in images)
    outgoing = Outgoing(sent, built.wire, limits)
    return Prepared(lambda: built.body, len(images), total, {_OUTGOING: outgoing})


def outgoing_of(request: Prepared, limits_of: Callable[[str], RouteLimits]) -> Outgoing:
    """Return how a prepared request is sent; one from a recording has no pictures to judge it by.

    Args:
        limits_of: gives the limits of a model.
    """
    outgoing = request.extra.get(_OUTGOING)
    if isinstance(outgoing, Outgoing):
        return outgoing
    sent = Sent(lambda: request.body, 0, (), ImageBudget())
    return Outgoing(sent, wire_of(request.body), limits_of(str(request.body.get("model"))))


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
