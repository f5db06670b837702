"""Real images for the tests, made by Pillow from fixed numbers."""

import io
import struct
import zlib
from typing import Any

from PIL import Image, PngImagePlugin

from everfold.attachments.admission import Source

ORIENTATION = 0x0112
SECRET = b"GPS 52.5 N 13.4 E"


def picture(width: int = 64, height: int = 48, mode: str = "RGB") -> Image.Image:
    """Return a picture with a different colour in each corner; with alpha, a clear hole."""
    image = Image.linear_gradient("L").resize((width, height))
    rgb = Image.merge("RGB", (image, image.transpose(Image.Transpose.ROTATE_180), image))
    rgb.paste((250, 10, 10), (0, 0, width // 4 + 1, height // 4 + 1))
    if mode in {"RGBA", "LA"}:
        rgb.putalpha(Image.new("L", rgb.size, 255))
        rgb.paste((0, 0, 0, 0), (width // 2, height // 2, width * 3 // 4, height * 3 // 4))
    return rgb.convert(mode)


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Return a picture that compresses badly, the same one each time."""
    bands = []
    state = 12_345
    for _ in Image.new(mode, (1, 1)).getbands():
        octets = bytearray()
        while len(octets) < width * height:
            state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
            octets += state.to_bytes(8, "little")[4:]
        bands.append(Image.frombytes("L", (width, height), bytes(octets[: width * height])))
    return Image.merge(mode, bands)


def with_hole(image: Image.Image) -> Image.Image:
    """Return an image whose middle is transparent."""
    alpha = Image.new("L", image.size, 255)
    width, height = image.size
    alpha.paste(0, (width // 3, height // 3, width // 2, height // 2))
    result = image.copy()
    result.putalpha(alpha)
    return result


def encoded(image: Image.Image, format_: str, **options: Any) -> bytes:
    """Return an image as Pillow writes it."""
    output = io.BytesIO()
    image.save(output, format_, **options)
    return output.getvalue()


def exif(orientation: int = 1) -> Image.Exif:
    """Return EXIF data with an orientation and something nobody should see."""
    data = Image.Exif()
    data[ORIENTATION] = orientation
    data[0x010E] = SECRET.decode()
    return data


def png_text() -> PngImagePlugin.PngInfo:
    """Return PNG text chunks with something nobody should see."""
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", SECRET.decode())
    return info


def animated(format_: str, frames: int = 3, **options: Any) -> bytes:
    """Return an animation whose first frame is red."""
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    images = [Image.new("RGB", (40, 30), colours[index % 3]) for index in range(frames)]
    # Equal neighbours would be written as one frame.
    for index, image in enumerate(images[1:]):
        image.putpixel((index % 40, 5), (9, 9, 9))
    return encoded(images[0], format_, save_all=True, append_images=images[1:], **options)


def bomb(width: int = 60_000, height: int = 60_000) -> bytes:
    """Return a small PNG that says it has very many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + _chunk(b"IDAT", zlib.compress(b"\x00" * 10_000))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def wide_png(bits_value: int = 0x8000) -> bytes:
    """Return a grey PNG of 16 bits a pixel, all of one value."""
    image = Image.new("I;16", (8, 6), bits_value)
    return encoded(image, "PNG")


def opened(data: bytes) -> Image.Image:
    """Return a decoded image."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def png(width: int = 64, height: int = 48) -> bytes:
    """Return a plain PNG."""
    return encoded(picture(width, height), "PNG")


def png_source(name: str | None = None) -> Source:
    """Return a source that every limit admits."""
    return Source(png(), name, "image/png")
