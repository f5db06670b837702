"""Images decoded in full, within limits, before anything believes in them."""

import io
import struct
import zlib
from dataclasses import dataclass
from typing import Literal

from PIL import Image, ImageCms, ImageFile, ImageOps

from everfold.attachments.quiet import quiet

PNG, JPEG, WEBP, GIF = "image/png", "image/jpeg", "image/webp", "image/gif"
KEPT_TYPES = frozenset((PNG, JPEG, WEBP, GIF))
"""The types that an image reference may have."""

_TYPES = {
    "PNG": PNG,
    "JPEG": JPEG,
    "MPO": JPEG,
    "WEBP": WEBP,
    "GIF": GIF,
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "PPM": "image/x-portable-anymap",
    "JPEG2000": "image/jp2",
    "AVIF": "image/avif",
}
"""Pillow's formats that are decoded. Left out are those that run programs or hold other files."""

_FAULTS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RuntimeError,
    MemoryError,
    EOFError,
    struct.error,
    zlib.error,
)
"""What Pillow raises for malformed data."""

Animation = Literal["first-frame", "refuse"]


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """What an image may be at most, before it is made smaller.

    Attributes:
        max_pixels: width times height.
        max_edge: of the longer side, in pixels.
        max_frames: of an animation or a document of several pages.
        animation: whether the first frame is taken of several, or they are refused.
    """

    max_pixels: int = 50_000_000
    max_edge: int = 16_384
    max_frames: int = 1_000
    animation: Animation = "first-frame"


class ImageFaultError(Exception):
    """An image cannot be used.

    Attributes:
        code: as in `everfold.attachments.errors.Refusal`.
        reason: for people.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded image.

    Attributes:
        media_type: what the bytes are, whatever was declared.
        image: the first frame, upright, in sRGB; its mode is L, LA, RGB or RGBA.
        frames: how many there were.
        is_upright: no orientation had to be applied.
        is_plain: the pixels are as stored: no colour conversion, at most 8 bits a channel.
        is_lossless: the stored form kept every pixel.
    """

    media_type: str
    image: Image.Image
    frames: int
    is_upright: bool
    is_plain: bool
    is_lossless: bool


@quiet()
def decode(data: bytes, limits: DecodeLimits) -> Decoded:
    """Decode the first frame completely; what Pillow warns of is shown to nobody.

    Raises:
        ImageFaultError: not an image, damaged, or over a limit.
    """
    image = _opened(data)
    _check_size(image, limits)
    frames = _frames(image, limits)
    _load(data, image)
    try:
        return _finished(data, image, frames)
    except _FAULTS as error:
        raise ImageFaultError("undecodable", f"its pixels cannot be used ({error})") from error


def sniffed(data: bytes) -> str | None:
    """Return the image type whose unmistakable signature the bytes begin with, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if data.startswith(b"\xff\xd8\xff"):
        return JPEG
    if data.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return WEBP
    if data.startswith((b"II*\x00", b"MM\x00*")):
        return "image/tiff"
    if data[4:12] in {b"ftypavif", b"ftypavis"}:
        return "image/avif"
    if data.startswith(b"\x00\x00\x00\x0cjP  "):
        return "image/jp2"
    if data.startswith(b"BM") and int.from_bytes(data[2:6], "little") == len(data):
        return "image/bmp"
    return None


def _opened(data: bytes) -> ImageFile.ImageFile:
    Image.init()
    formats = [name for name in _TYPES if name in Image.OPEN]
    try:
        return Image.open(io.BytesIO(data), formats=formats)
    except Image.DecompressionBombError as error:
        raise ImageFaultError(
            "pixels",
            f"it would decode to too many pixels ({error}; see PIL.Image.MAX_IMAGE_PIXELS)",
        ) from error
    except _FAULTS as error:
        raise ImageFaultError(
            "undecodable",
            f"its {len(data)} bytes are not an image of a type that is decoded here ("
            f"{', '.join(sorted(set(_TYPES.values())))}), or are damaged; "
            "attach it as a file to keep it as it is",
        ) from error


def _check_size(image: Image.Image, limits: DecodeLimits) -> None:
    width, height = image.size
    size = f"it is {width} x {height} pixels"
    if width * height > limits.max_pixels:
        raise ImageFaultError("pixels", f"{size}, {limits.max_pixels} in all are the most")
    if max(width, height) > limits.max_edge:
        raise ImageFaultError("edge", f"{size}, {limits.max_edge} on a side are the most")


def _frames(image: ImageFile.ImageFile, limits: DecodeLimits) -> int:
    if image.format == "MPO":
        # The other pictures of a camera's file are previews and depth maps, not frames.
        return 1
    try:
        frames = int(getattr(image, "n_frames", 1))
    except _FAULTS as error:
        raise ImageFaultError("undecodable", f"its frames are damaged ({error})") from error
    if frames > 1 and limits.animation == "refuse":
        raise ImageFaultError("frames", f"it has {frames} frames; only still images are taken")
    if frames > limits.max_frames:
        raise ImageFaultError("frames", f"it has {frames} frames, {limits.max_frames} are the most")
    return frames


def _load(data: bytes, image: ImageFile.ImageFile) -> None:
    try:
        if image.format == "PNG":
            # Decoding stops at the last row; this looks at every checksum to the end.
            Image.open(io.BytesIO(data), formats=["PNG"]).verify()
        image.load()
    except (Image.DecompressionBombError, *_FAULTS) as error:
        raise ImageFaultError(
            "undecodable", f"its data are damaged or cut off ({error})"
        ) from error


def _finished(data: bytes, image: ImageFile.ImageFile, frames: int) -> Decoded:
    media_type = _TYPES[image.format or ""]
    upright = ImageOps.exif_transpose(image)
    in_srgb = _srgb(upright)
    plain = _eight_bits(in_srgb)
    plain.info = {}
    return Decoded(
        media_type,
        plain,
        frames,
        is_upright=image.getexif().get(0x0112, 1) in {0, 1},
        is_plain=in_srgb is upright and _is_plain(image, data),
        is_lossless=_is_lossless(image, data),
    )


def _is_plain(image: ImageFile.ImageFile, data: bytes) -> bool:
    if image.format == "PNG":
        return data[24] <= 8
    return image.mode in {"1", "L", "LA", "P", "PA", "RGB", "RGBA"}


def _is_lossless(image: ImageFile.ImageFile, data: bytes) -> bool:
    if image.format == "WEBP":
        return b"VP8L" in data[:64]
    return image.format not in {"JPEG", "MPO", "JPEG2000", "AVIF"}


def _srgb(image: Image.Image) -> Image.Image:
    """Return the image in sRGB, the same object if its colours already mean that."""
    profile = image.info.get("icc_profile")
    if not profile or image.mode not in {"RGB", "RGBA", "CMYK"}:
        return image
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if "srgb" in ImageCms.getProfileDescription(source).lower():
            return image
        converted = ImageCms.profileToProfile(
            image,
            source,
            ImageCms.createProfile("sRGB"),
            outputMode="RGBA" if image.mode == "RGBA" else "RGB",
        )
    except (ImageCms.PyCMSError, *_FAULTS):
        # A damaged profile says nothing about the colours.
        return image
    return converted or image


def _eight_bits(image: Image.Image) -> Image.Image:
    """Return a copy of mode L, LA, RGB or RGBA."""
    mode = image.mode
    if mode.startswith("I") or mode == "F":
        return _scaled_to_eight(image)
    if image.has_transparency_data:
        return image.convert("LA" if mode in {"LA", "La"} else "RGBA")
    return image.convert("L" if mode in {"1", "L"} else "RGB")


def _scaled_to_eight(image: Image.Image) -> Image.Image:
    """Return wide grey values as 8 bits: 16-bit ones by their high byte, others over their range."""
    wide = image.convert("F")
    low, high = wide.getextrema()
    assert isinstance(low, float)
    assert isinstance(high, float)
    if image.mode.startswith("I;16") or (low >= 0 and 255 < high <= 65_535):
        low, high = 0.0, 65_535.0
    elif low >= 0 and high <= 255:
        low, high = 0.0, 255.0
    factor = 255.0 / (high - low or 1.0)
    return wide.point(lambda value: value * factor - low * factor).convert("L")
