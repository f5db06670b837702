"""Real image files for the demonstration: drawn here when the user brings none, and cropped by a tool."""

from io import BytesIO

from PIL import Image, ImageDraw

_SCENES: tuple[tuple[str, str, tuple[int, int], tuple[int, int, int]], ...] = (
    ("harbour.png", "PNG", (640, 400), (70, 120, 170)),
    ("quay.jpg", "JPEG", (720, 480), (150, 130, 100)),
    ("crane.webp", "WEBP", (800, 500), (200, 170, 90)),
    ("night.png", "PNG", (700, 440), (30, 30, 70)),
)


def drawn_pictures() -> list[tuple[str, bytes]]:
    """Return name and bytes of four pictures of a harbour; the same ones every time."""
    return [
        (name, _encoded(_scene(place, size, sky), kind))
        for place, (name, kind, size, sky) in enumerate(_SCENES)
    ]


def zoomed(data: bytes) -> bytes:
    """Return the middle of an image as a PNG of half its width and height."""
    with Image.open(BytesIO(data)) as image:
        width, height = image.size
        box = (width // 4, height // 4, width - width // 4, height - height // 4)
        return _encoded(image.convert("RGB").crop(box), "PNG")


def _scene(place: int, size: tuple[int, int], sky: tuple[int, int, int]) -> Image.Image:
    width, height = size
    # A little grain, so that the files have the size of photographs of their dimensions.
    grain = Image.linear_gradient("L").resize(size).rotate(90 * place).resize(size)
    image = Image.blend(Image.new("RGB", size, sky), Image.merge("RGB", (grain,) * 3), 0.35)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, height * 2 // 3, width, height), fill=tuple(part // 2 for part in sky))
    for boat in range(3 + place):
        left = 30 + boat * (width - 60) // (3 + place)
        deck = height * 2 // 3 - 6 * (boat % 3)
        draw.polygon(
            ((left, deck), (left + 70, deck), (left + 55, deck + 22), (left + 12, deck + 22)),
            fill=(200 - 20 * boat, 60 + 25 * boat, 60),
        )
        draw.line((left + 35, deck, left + 35, deck - 60 - 8 * boat), fill="white", width=3)
    return image


def _encoded(image: Image.Image, kind: str) -> bytes:
    file = BytesIO()
    image.save(file, kind)
    return file.getvalue()
