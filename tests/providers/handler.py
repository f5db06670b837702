"""The HTTP half of StrictFake: reads a request, writes an answer, breaks it off where it is told to."""

import select
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any, ClassVar, Protocol

from tests.providers.answers import Answer, Refuse
from tests.providers.refusing import Vendor
from tests.providers.seen import Seen
from tests.providers.writing import frame

COMMENT = b": keep-alive\n\n"
MALFORMED = b'data: {"choices": [{"delta": {"content": "half\n\n'


@dataclass(frozen=True)
class Wire:
    """A vendor's form of requests and answers; `empty` are events that say nothing."""

    vendor: Vendor
    read: Callable[[Any], Seen]
    frames: Callable[[Answer, str], Iterator[bytes]]
    empty: Sequence[bytes]


@dataclass(frozen=True)
class Reply:
    """What to answer, and in which form."""

    wire: Wire
    answer: Answer | Refuse
    model: str = ""


class Provider(Protocol):
    """Decides what a request is answered."""

    stopping: Event

    def reply(self, path: str, headers: dict[str, str], body: bytes) -> Reply:
        """Return the answer to a request."""
        ...

    def client_left(self) -> None:
        """Be told that a client hung up amid an answer."""
        ...


class Handler(BaseHTTPRequestHandler):
    """Serves one connection; `fake` is set by a subclass."""

    protocol_version = "HTTP/1.1"
    fake: ClassVar[Provider]

    def do_POST(self) -> None:
        """Answer a request."""
        body = self._body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.fake.reply(self.path.split("?")[0], headers, body)
        try:
            self._write(reply)
        except OSError:
            self.close_connection = True
            self.fake.client_left()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: tests look at the calls."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _write(self, reply: Reply) -> None:
        answer = reply.answer
        self._pause(answer.first_byte_s)
        if isinstance(answer, Refuse):
            self._whole(answer.status, answer.headers, answer.body)
            return
        if not answer.streamed:
            self._whole(200, {"Content-Type": "application/json"}, b'{"choices": []}')
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        for name in ("x-request-id", "request-id"):
            self.send_header(name, answer.request_id)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._stream(answer, list(reply.wire.frames(answer, reply.model)), reply.wire.empty)

    def _stream(self, answer: Answer, frames: list[bytes], empty: Sequence[bytes]) -> None:
        middle = len(frames) // 2
        for at, data in enumerate(frames):
            if at == middle and answer.filler != "none":
                self._fill(answer, [COMMENT] if answer.filler == "comment" else empty)
            while at == middle and answer.held is not None and not self._may_go_on(answer.held):
                self._pause(0.02)
            if at == middle and answer.malformed:
                self._chunk(MALFORMED)
            if at == middle and answer.error is not None:
                self._chunk(frame(dict(answer.error), "error"))
            if at == middle and answer.cut == "mid-frame":
                self._break(data[: len(data) // 2])
                return
            if at == max(middle, len(frames) - 3) and answer.cut == "before-finish":
                self._break(b"")
                return
            self._chunk(data)
            self._pause(answer.between_s)
        self.wfile.write(b"0\r\n\r\n")

    def _may_go_on(self, held: Event) -> bool:
        return held.is_set() or self.fake.stopping.is_set()

    def _fill(self, answer: Answer, fillers: Sequence[bytes]) -> None:
        """Send what says nothing, as long as the client and the server live."""
        for number in range(answer.fillers):
            if self.fake.stopping.is_set():
                return
            self._chunk(fillers[number % len(fillers)])
            self._pause(answer.filler_s)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _break(self, data: bytes) -> None:
        """Send the rest, and end the connection in the middle of the body."""
        if data:
            self._chunk(data)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _pause(self, seconds: float) -> None:
        """Wait, but not longer than the client and the server live.

        Raises:
            ConnectionError: the client hung up.
        """
        waited = 0.0
        while waited < seconds and not self.fake.stopping.wait(min(0.02, seconds)):
            waited += 0.02
            if select.select([self.connection], [], [], 0)[0] and not self._is_there():
                raise ConnectionAbortedError("the client hung up")

    def _is_there(self) -> bool:
        peeked: bytes = self.connection.recv(1, socket.MSG_PEEK)
        return peeked != b""
