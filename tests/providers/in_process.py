"""A provider in place of the HTTP transport: takes a request's bytes where the socket would."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import httpx2

from tests.providers.answers import Answer
from tests.providers.writing import chat_frames, messages_frames, responses_frames

Frames = Callable[[Answer, str], Iterator[bytes]]

WRITERS: dict[str, Frames] = {
    "chat": chat_frames,
    "messages": messages_frames,
    "responses": responses_frames,
}
"""The answers of each wire."""


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, as it comes from a socket."""

    def __init__(self, frames: tuple[bytes, ...]) -> None:
        self._frames = frames

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for frame in self._frames:
            yield frame


@dataclass
class InProcess(httpx2.AsyncBaseTransport):
    """Takes every request to its last byte and answers at once with a stream of the vendor's.

    Attributes:
        wire: a key of WRITERS.
        request: the last one, and `pieces` its body as it came.
        is_closed: whether its client was closed.
    """

    wire: str
    text: str = "noted"
    request: httpx2.Request | None = None
    pieces: list[bytes] = field(default_factory=list)
    is_closed: bool = False

    def __post_init__(self) -> None:
        answer = Answer(self.text, piece=len(self.text))
        self._frames = tuple(WRITERS[self.wire](answer, "m-1"))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Take a request and answer it."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        self.request = request
        self.pieces = [piece async for piece in request.stream]
        assert request.headers["Content-Length"] == str(sum(map(len, self.pieces)))
        kind = {"Content-Type": "text/event-stream"}
        return httpx2.Response(200, headers=kind, stream=_Body(self._frames))

    async def aclose(self) -> None:
        """Take note of being closed."""
        self.is_closed = True

    @property
    def body(self) -> bytes:
        """The bytes of the last request."""
        return b"".join(self.pieces)
