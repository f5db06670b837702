"""Images that a program holds as Pillow's objects, on their way to be admitted like any others."""

import sys
from io import BytesIO
from typing import Any

from everfold.agent.tools import ImageData

_WRITABLE = ("1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA")
"""The modes in which Pillow writes PNG."""


def drawn(value: Any) -> Any:
    """Return a Pillow image as image data in PNG, and anything else as it is."""
    # Who has such an image has loaded Pillow; nobody else loads it for this question.
    pillow = sys.modules.get("PIL.Image")
    if pillow is None or not isinstance(value, pillow.Image):
        return value
    out = BytesIO()
    shown = value if value.mode in _WRITABLE else value.convert("RGB")
    shown.save(out, "PNG")
    return ImageData(out.getvalue(), media_type="image/png")
