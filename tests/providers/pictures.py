"""Invented pictures: real images of an exact number of bytes."""

import io
import struct
import zlib
from functools import cache

from PIL import Image

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}
_EMPTY_BLOCK = bytes.fromhex("000000ffff")
"""A stored deflate block without data, 5 bytes."""
_TWO_EMPTY_BLOCKS = bytes.fromhex("02000000ffff")
"""An empty block of fixed codes, then an empty stored one, 6 bytes."""
_LEAST_FILLER = 20


def img(
    size: int | None = None,
    width: int = 8,
    height: int = 8,
    media_type: str = "image/png",
    shade: int = 0,
) -> bytes:
    """Return an image file that decodes.

    A PNG is filled up inside its compressed pixels, so that stripping metadata leaves it as it is;
    the others are filled up behind their end.

    Args:
        size: bytes of the file, exactly; None for as few as it takes.
        width: in pixels; so is `height`.
        media_type: png, jpeg, webp or gif.
        shade: pictures of different shades are different files.

    Raises:
        ValueError: the picture does not fit into `size` bytes.
    """
    if media_type == "image/png":
        return _png(size, width, height, shade)
    plain = _plain(width, height, media_type, shade)
    if size is not None and size < len(plain):
        raise ValueError(f"{width} x {height} {media_type} takes {len(plain)} bytes")
    return plain.ljust(size or 0, b"\0")


def corrupt(picture: bytes) -> bytes:
    """Return a file that starts like the picture and does not decode."""
    middle = len(picture) // 2
    return picture[:40] + bytes(len(picture[40:middle])) + picture[middle:]


def _colour(shade: int) -> tuple[int, int, int]:
    return shade % 256, shade // 256 % 256, shade // 65536 % 256


@cache
def _plain(width: int, height: int, media_type: str, shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), _colour(shade)).save(file, _FORMATS[media_type])
    return file.getvalue()


@cache
def _png(size: int | None, width: int, height: int, shade: int) -> bytes:
    rows = (b"\0" + bytes(_colour(shade)) * width) * height
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    pixels = packer.compress(rows) + packer.flush()
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    end = struct.pack(">I", zlib.adler32(rows))

    def file(filler: bytes) -> bytes:
        data = _chunk(b"IDAT", b"\x78\x01" + filler + pixels + end)
        return b"\x89PNG\r\n\x1a\n" + head + data + _chunk(b"IEND", b"")

    plain = file(b"")
    return plain if size in (None, len(plain)) else file(_filler((size or 0) - len(plain)))


def _filler(length: int) -> bytes:
    if length < _LEAST_FILLER:
        raise ValueError(f"the picture needs {_LEAST_FILLER - length} bytes more")
    sixes = length % 5
    return _TWO_EMPTY_BLOCKS * sixes + _EMPTY_BLOCK * ((length - 6 * sixes) // 5)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
