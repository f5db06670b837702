"""What a provider sees in a request, whatever its wire form."""

import base64
import binascii
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from PIL import Image

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


@dataclass
class SeenImage:
    """A picture in a request.

    Attributes:
        path: where it stands, in the vendor's notation.
        media_type: what the request says it is.
        encoded: its base64 text; empty if it is a file id or a URL.
        file_id: the id of an uploaded file.
        role: of the message that holds it; `tool` inside a tool result.
    """

    path: str
    media_type: str
    encoded: str
    file_id: str | None = None
    role: str = "user"

    @cached_property
    def data(self) -> bytes | None:
        """Its bytes, None if they are not base64 or not here."""
        if not self.encoded:
            return None
        try:
            return base64.b64decode(self.encoded, validate=True)
        except binascii.Error:
            return None

    @property
    def true_type(self) -> str | None:
        """The media type that the bytes show."""
        data = self.data or b""
        return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)

    @cached_property
    def edge(self) -> int:
        """The longer side in pixels; 0 if the file has none."""
        try:
            with Image.open(io.BytesIO(self.data or b"")) as image:
                return max(image.size)
        except OSError:
            return 0


@dataclass(frozen=True)
class SeenCall:
    """A tool call, or the answer to one; `step` is the message that holds it, counted from 0."""

    kind: Literal["call", "answer"]
    id: str
    step: int
    path: str


@dataclass(frozen=True)
class SeenText:
    """A text block, and the role of its message."""

    text: str
    path: str
    role: str


@dataclass(frozen=True)
class SeenThought:
    """A reasoning block and its proof."""

    text: str
    signature: str
    path: str


@dataclass
class Seen:
    """A request, taken apart; `wire` is the form it came in."""

    wire: Literal["chat", "responses", "messages"]
    model: str = ""
    roles: list[str] = field(default_factory=list)
    images: list[SeenImage] = field(default_factory=list)
    calls: list[SeenCall] = field(default_factory=list)
    texts: list[SeenText] = field(default_factory=list)
    thoughts: list[SeenThought] = field(default_factory=list)
    empty_messages: list[str] = field(default_factory=list)
    tools: Sequence[object] = ()

    @property
    def all_text(self) -> str:
        """Every text of the request, one after another."""
        return "\n".join(text.text for text in self.texts)
