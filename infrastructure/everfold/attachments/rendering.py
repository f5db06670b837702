"""One image as another: in bounds, upright, without metadata, in a type that models read."""

import io
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image

from everfold.attachments.containers import stripped
from everfold.attachments.decoding import (
    GIF,
    JPEG,
    KEPT_TYPES,
    PNG,
    WEBP,
    Decoded,
    DecodeLimits,
    ImageFaultError,
    decode,
)
from everfold.attachments.quiet import quiet

QUALITY = 90
_LOWER_QUALITIES = (80, 70, 60)
_SHRINK = 0.75
_SMALLEST_EDGE = 16
_FORMATS = {PNG: "PNG", JPEG: "JPEG", WEBP: "WEBP", GIF: "GIF"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the result must be.

    Attributes:
        media_type: its type; None keeps the type where that is possible.
        max_edge: of the longer side, in pixels; None is unlimited.
        max_bytes: of the encoded image; None is unlimited.
    """

    media_type: str | None = None
    max_edge: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The result.

    Attributes:
        data: the encoded image.
        width, height: in pixels.
        source_type: what the source really was.
        source_width, source_height: of the source, upright.
        frames: how many the source had.
    """

    data: bytes
    media_type: str
    width: int
    height: int
    source_type: str
    source_width: int
    source_height: int
    frames: int


@dataclass(frozen=True, slots=True)
class _Encoded:
    data: bytes
    media_type: str
    size: tuple[int, int]


@quiet()
def render(data: bytes, bounds: Bounds, limits: DecodeLimits) -> Rendered:
    """Return the image within `bounds`; the same input gives the same bytes.

    Pixels that fit are copied as they are compressed, not encoded again; so an image that was
    rendered before comes back unchanged.

    Raises:
        ImageFaultError: not an image, damaged, over a limit, or too detailed for `max_bytes`.
    """
    decoded = decode(data, limits)
    encoded = _copied(data, decoded, bounds) or _fitted(decoded, bounds)
    return Rendered(
        encoded.data,
        encoded.media_type,
        *encoded.size,
        decoded.media_type,
        *decoded.image.size,
        decoded.frames,
    )


def _copied(data: bytes, decoded: Decoded, bounds: Bounds) -> _Encoded | None:
    """Return the source's own compressed pixels if nothing has to change but metadata."""
    if (bounds.media_type or decoded.media_type) != decoded.media_type:
        return None
    if not (decoded.is_upright and decoded.is_plain):
        return None
    if bounds.max_edge is not None and max(decoded.image.size) > bounds.max_edge:
        return None
    copy = stripped(data, decoded.media_type)
    if copy is None or not _fits(copy, bounds) or not _shows(copy, decoded.image):
        return None
    return _Encoded(copy, decoded.media_type, decoded.image.size)


def _shows(copy: bytes, image: Image.Image) -> bool:
    """Tell whether a stripped image decodes to the same pixels."""
    try:
        again = decode(copy, DecodeLimits(image.width * image.height, max(image.size), 1)).image
    except ImageFaultError:
        return False
    return again.mode == image.mode and again.tobytes() == image.tobytes()


def _fitted(decoded: Decoded, bounds: Bounds) -> _Encoded:
    """Return the first attempt that fits, from the best to the smallest."""
    image = _within(decoded.image, bounds.max_edge)
    for media_type, quality, scale in _attempts(decoded, bounds, max(image.size)):
        size = _scaled(image.size, scale)
        smaller = image if size == image.size else image.resize(size, Image.Resampling.LANCZOS)
        encoded = _encode(smaller, media_type, quality)
        if _fits(encoded, bounds):
            return _Encoded(encoded, media_type, size)
    raise ImageFaultError(
        "too-large",
        f"it cannot be encoded in {bounds.max_bytes} bytes, not even at {_SMALLEST_EDGE} pixels",
    )


def _attempts(
    decoded: Decoded, bounds: Bounds, edge: int
) -> Iterator[tuple[str, int | None, float]]:
    """Yield type, quality (None: lossless) and scale, from the best to the smallest."""
    first = bounds.media_type or _own_type(decoded)
    is_exact = first in {PNG, GIF} or (first == WEBP and decoded.is_lossless)
    yield first, None if is_exact else QUALITY, 1.0
    lossy = first if bounds.media_type or first in {JPEG, WEBP} else _lossy_type(decoded.image)
    qualities = (None,) if lossy in {PNG, GIF} else (QUALITY, *_LOWER_QUALITIES)
    for quality in qualities:
        yield lossy, quality, 1.0
    scale = _SHRINK
    while edge * scale >= _SMALLEST_EDGE:
        yield lossy, qualities[-1], scale
        scale *= _SHRINK


def _own_type(decoded: Decoded) -> str:
    """Return the type to encode in: a GIF could not hold the colours that scaling makes."""
    if decoded.media_type in KEPT_TYPES and decoded.media_type != GIF:
        return decoded.media_type
    return PNG if decoded.is_lossless or _has_alpha(decoded.image) else JPEG


def _lossy_type(image: Image.Image) -> str:
    return WEBP if _has_alpha(image) else JPEG


def _has_alpha(image: Image.Image) -> bool:
    return image.mode in {"LA", "RGBA"}


def _fits(data: bytes, bounds: Bounds) -> bool:
    return bounds.max_bytes is None or len(data) <= bounds.max_bytes


def _within(image: Image.Image, max_edge: int | None) -> Image.Image:
    if max_edge is None or max(image.size) <= max_edge:
        return image
    size = _scaled(image.size, max_edge / max(image.size))
    return image.resize(size, Image.Resampling.LANCZOS)


def _scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    width, height = size
    return max(1, round(width * scale)), max(1, round(height * scale))


def _encode(image: Image.Image, media_type: str, quality: int | None) -> bytes:
    output = io.BytesIO()
    options: dict[str, int | bool | None] = {}
    if media_type == JPEG:
        image, options = _opaque(image), {"quality": quality, "optimize": True}
    elif media_type == WEBP:
        options = {"quality": quality or QUALITY, "lossless": quality is None, "method": 4}
    try:
        image.save(output, _FORMATS[media_type], **options)
    except (OSError, ValueError) as error:
        size = f"{image.width} x {image.height} pixels"
        raise ImageFaultError("edge", f"{size} do not fit into {media_type} ({error})") from error
    return output.getvalue()


def _opaque(image: Image.Image) -> Image.Image:
    """Return the image on white, since JPEG has no transparency."""
    if not _has_alpha(image):
        return image
    layer = image.convert("RGBA")
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, layer).convert("RGB")
