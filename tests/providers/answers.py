"""What a provider is told to answer: text, calls, and every way in which an answer can go wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Literal

Cut = Literal["none", "before-finish", "mid-frame"]
Filler = Literal["none", "comment", "empty"]


@dataclass(frozen=True)
class ToolUse:
    """A tool call of the model; `arguments` is sent as it is, valid JSON or not."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True)
class Answer:
    """An answer with status 200.

    Attributes:
        text: sent in pieces of `piece` characters; so is `reasoning`, which comes first.
        signature: the proof that goes with the reasoning, where the wire has one.
        finish: in the words of `everfold.llm.chunks`, or `content-filter`.
        input_tokens: of the usage; None for an answer without usage.
        first_byte_s: how long the headers take; `between_s` how long each later piece.
        held: the last half of the answer waits until it is set.
        cut: where the connection breaks.
        malformed: a frame that is not JSON comes amid the answer.
        error: the body of an error that comes amid the stream.
        filler: what comes before the answer's last half and says nothing: comments, which no client
            shows, or the wire's own events without content; `fillers` of them, `filler_s` apart.
        streamed: False for a plain JSON answer to a request for a stream.
    """

    text: str = "Seen."
    reasoning: str = ""
    signature: str = ""
    calls: tuple[ToolUse, ...] = ()
    finish: str = "stop"
    input_tokens: int | None = 12
    output_tokens: int = 3
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    piece: int = 4
    first_byte_s: float = 0
    between_s: float = 0
    held: Event | None = None
    cut: Cut = "none"
    malformed: bool = False
    error: Mapping[str, object] | None = None
    request_id: str = "req_0001"
    streamed: bool = True
    reasoning_field: str = "reasoning_content"
    filler: Filler = "none"
    fillers: int = 1_000_000
    filler_s: float = 0.05


@dataclass(frozen=True)
class Refuse:
    """An answer with an error status; `body` is sent as it is."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    first_byte_s: float = 0


EMPTY = Answer(text="", input_tokens=None)
"""Status 200, no content, no usage: rejection style R5."""


def huge(length: int) -> Answer:
    """Return an answer of `length` characters in pieces of 64 KiB."""
    return Answer(text="0123456789abcdef" * (length // 16), piece=65536)


def pieces(text: str, size: int) -> list[str]:
    """Return a text in pieces of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]
