"""Invented pictures: real images of an exact number of bytes, padded where decoders do not look."""

import io
import struct
import zlib
from functools import cache

from PIL import Image

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}


def img(
    size: int | None = None,
    width: int = 8,
    height: int = 8,
    media_type: str = "image/png",
    shade: int = 0,
) -> bytes:
    """Return an image file that decodes.

    Args:
        size: bytes of the file, exactly; None for as few as it takes.
        width: in pixels; so is `height`.
        media_type: png, jpeg, webp or gif.
        shade: pictures of different shades are different files.

    Raises:
        ValueError: the picture does not fit into `size` bytes.
    """
    plain = _plain(width, height, media_type, shade)
    if size is None:
        return plain
    if size < len(plain) + 12:
        raise ValueError(f"{width} x {height} {media_type} takes {len(plain) + 12} bytes")
    return _padded_png(plain, size) if media_type == "image/png" else plain.ljust(size, b"\0")


def corrupt(picture: bytes) -> bytes:
    """Return a file that starts like the picture and does not decode."""
    middle = len(picture) // 2
    return picture[:40] + bytes(len(picture[40:middle])) + picture[middle:]


@cache
def _plain(width: int, height: int, media_type: str, shade: int) -> bytes:
    colour = (shade % 256, shade // 256 % 256, shade // 65536 % 256)
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, _FORMATS[media_type])
    return file.getvalue()


def _padded_png(plain: bytes, size: int) -> bytes:
    """Put a private chunk of zeros before the last one, IEND, which takes 12 bytes."""
    filler = bytes(size - len(plain) - 12)
    name = b"fiLl"
    chunk = struct.pack(">I", len(filler)) + name + filler
    return plain[:-12] + chunk + struct.pack(">I", zlib.crc32(name + filler)) + plain[-12:]
