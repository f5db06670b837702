"""Models that take no pictures: text stands for every one of them, omitted or not (R258)."""

from collections.abc import Mapping, Sequence
from typing import Any

from everfold.llm.images import is_omitted
from everfold.llm.placeholders import offloaded_image_text, text_only_image_text
from everfold.routes.limits import ImageTokens, RouteLimits

_TILE_EDGE = 512
_TEXT_OVERHEAD = 4
_TEXT_UNIT = 4


def attachment_of(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the reference of an image or file block; empty if a log holds none."""
    attachment = block.get("attachment")
    return attachment if isinstance(attachment, Mapping) else {}


def shown_as_text(image: Mapping[str, Any]) -> str:
    """Return what a text-only model reads instead of an image block."""
    return text_only_image_text(attachment_of(image))


def image_tokens(images: Sequence[Mapping[str, Any]], limits: RouteLimits) -> list[int]:
    """Return the token price of each image block on a route (R304).

    An omitted one costs its placeholder, and so does every one where the model reads text only.
    """
    return [_price(image, limits) for image in images]


def _price(image: Mapping[str, Any], limits: RouteLimits) -> int:
    if limits.is_text_only:
        return _text_price(shown_as_text(image))
    if is_omitted(image):
        return _text_price(offloaded_image_text(attachment_of(image), None))
    width, height = _sent_size(attachment_of(image), limits.request_version.max_edge)
    return _visual_price(limits.image_tokens, width, height)


def _visual_price(prices: ImageTokens, width: int, height: int) -> int:
    match prices.kind:
        case "area":
            return -(-width * height // prices.divisor)
        case "tiles":
            tiles = -(-width // _TILE_EDGE) * -(-height // _TILE_EDGE)
            return prices.base + prices.tile * tiles
        case "fixed":
            return prices.base


def _sent_size(attachment: Mapping[str, Any], max_edge: int) -> tuple[int, int]:
    """Return the pixels of the version that is sent: the longer side fits `max_edge`."""
    sides = [attachment.get("width"), attachment.get("height")]
    width, height = (side if type(side) is int and side > 0 else max_edge for side in sides)
    longer = max(width, height)
    if longer <= max_edge:
        return width, height
    return max(1, width * max_edge // longer), max(1, height * max_edge // longer)


def _text_price(text: str) -> int:
    """Return the price of a text block by R298; lengths are in UTF-16 units (R300)."""
    return -(-(len(text.encode("utf-16-le")) // 2) // _TEXT_UNIT) + _TEXT_OVERHEAD
