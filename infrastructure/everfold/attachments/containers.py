"""Still images without what is not needed to show them: metadata, thumbnails, later frames, trailing bytes.

The compressed pixels are copied, so nothing is lost, and stripping twice is stripping once.
Each function answers None for data of a structure it does not know; the image is then encoded anew.
"""

import zlib
from collections.abc import Callable, Iterator

_JFIF = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
_SOS, _EOI, _COM, _APP0, _APP14, _APP15 = 0xDA, 0xD9, 0xFE, 0xE0, 0xEE, 0xEF
_VP8X_ALPHA = 0x10


def stripped(data: bytes, media_type: str) -> bytes | None:
    """Return a still image of the same pixels without metadata; None if it must be encoded anew."""
    strip = _STRIPPERS.get(media_type)
    if strip is None:
        return None
    try:
        return strip(data)
    except IndexError:
        return None


def _jpeg(data: bytes) -> bytes | None:
    """Keep tables, frames and scans, and the two markers that say how colours are meant."""
    kept = [b"\xff\xd8"]
    position = 2
    while position < len(data):
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker == _EOI:
            return b"".join([*kept, b"\xff\xd9"])
        end = position + 2 + int.from_bytes(data[position + 2 : position + 4], "big")
        if end > len(data):
            return None
        kept.append(_jpeg_segment(marker, data[position:end]))
        position = end
        if marker == _SOS:
            position = _end_of_scan(data, end)
            kept.append(data[end:position])
    return None


def _jpeg_segment(marker: int, segment: bytes) -> bytes:
    if marker == _APP0:
        return _JFIF if segment[4:9] == b"JFIF\x00" else b""
    if marker == _APP14:
        return segment if segment[4:9] == b"Adobe" else b""
    if _APP0 < marker <= _APP15 or marker == _COM:
        return b""
    return segment


def _end_of_scan(data: bytes, start: int) -> int:
    """Return where the next marker stands that is neither a stuffed byte nor a restart."""
    position = data.find(b"\xff", start)
    while position != -1 and position + 1 < len(data):
        following = data[position + 1]
        if following != 0 and not 0xD0 <= following <= 0xD7:
            return position
        position = data.find(b"\xff", position + 2)
    return len(data)


def _png(data: bytes) -> bytes | None:
    kept = [_PNG_SIGNATURE]
    position = len(_PNG_SIGNATURE)
    while position + 12 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        end = position + 12 + length
        kind, body = data[position + 4 : position + 8], data[position + 4 : end - 4]
        if end > len(data) or zlib.crc32(body) != int.from_bytes(data[end - 4 : end], "big"):
            return None
        if kind in _PNG_KEPT:
            kept.append(data[position:end])
        if kind == b"IEND":
            return b"".join(kept)
        position = end
    return None


def _webp(data: bytes) -> bytes | None:
    chunks = dict(_webp_chunks(data))
    pixels = chunks.get(b"VP8L", chunks.get(b"VP8 "))
    if pixels is None or b"ANMF" in chunks:
        return None
    if b"ALPH" in chunks and b"VP8X" in chunks and b"VP8L" not in chunks:
        head = bytes([_VP8X_ALPHA]) + chunks[b"VP8X"][1:]
        body = _chunk(b"VP8X", head) + _chunk(b"ALPH", chunks[b"ALPH"]) + _chunk(b"VP8 ", pixels)
    else:
        body = _chunk(b"VP8L" if b"VP8L" in chunks else b"VP8 ", pixels)
    return b"RIFF" + (len(body) + 4).to_bytes(4, "little") + b"WEBP" + body


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 12
    while position + 8 <= len(data):
        length = int.from_bytes(data[position + 4 : position + 8], "little")
        yield data[position : position + 4], data[position + 8 : position + 8 + length]
        position += 8 + length + length % 2


def _chunk(kind: bytes, body: bytes) -> bytes:
    return kind + len(body).to_bytes(4, "little") + body + b"\x00" * (len(body) % 2)


def _gif(data: bytes) -> bytes | None:
    """Keep the screen, the palette and the first picture with its graphic control block."""
    control = b""
    position = 13 + _palette_length(data[10])
    screen = b"GIF89a" + data[6:position]
    while data[position] == 0x21:
        end = _end_of_blocks(data, position + 2)
        if data[position + 1] == 0xF9:
            control = data[position:end]
        position = end
    if data[position] != 0x2C:
        return None
    pixels = position + 10 + _palette_length(data[position + 9]) + 1
    return screen + control + data[position : _end_of_blocks(data, pixels)] + b"\x3b"


def _palette_length(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _end_of_blocks(data: bytes, position: int) -> int:
    while data[position]:
        position += data[position] + 1
    return position + 1


_STRIPPERS: dict[str, Callable[[bytes], bytes | None]] = {
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
    "image/gif": _gif,
}
