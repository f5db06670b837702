"""StrictFake: a provider on loopback that counts calls, keeps each body as it came, and refuses by rule.

It speaks chat completions (`/v1/chat/completions`), Responses (`/v1/responses`, `/v1/files`) and
Anthropic messages (`/v1/messages`). What it answers next is put into `answers`; with none left it
answers `default`.
"""

import itertools
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer

from tests.providers.answers import Answer, Refuse
from tests.providers.handler import Handler, Reply, Wire
from tests.providers.multipart import uploaded
from tests.providers.reading import read_chat, read_messages, read_responses
from tests.providers.refusing import Rejection, error, refuse
from tests.providers.rules import STRICT, Rules, Violation, json_fault, violations
from tests.providers.seen import Seen
from tests.providers.writing import (
    chat_empty,
    chat_frames,
    messages_empty,
    messages_frames,
    responses_empty,
    responses_frames,
)

CHAT = Wire("openai", read_chat, chat_frames, chat_empty())
RESPONSES = Wire("openai", read_responses, responses_frames, responses_empty())
MESSAGES = Wire("anthropic", read_messages, messages_frames, messages_empty())
_WIRES = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES}


@dataclass
class Call:
    """A request for an answer, as it came.

    Attributes:
        violation: the rule that it broke; None if it was answered.
    """

    path: str
    headers: dict[str, str]
    raw: bytes
    seen: Seen | None = None
    violation: Violation | None = None

    @property
    def body(self) -> dict[str, object]:
        """The JSON of the body."""
        value: dict[str, object] = json.loads(self.raw)
        return value


@dataclass
class StrictFake:
    """The provider's rules, what it answers, and what it was asked.

    Attributes:
        rules: broken ones are refused before `answers` is looked at.
        answering: gives the answer to a call when `answers` is empty; `default` if there is none.
        uploads: files by id; remove one, and the provider says that it is gone.
        upload_refusal: what uploads are answered, None to take them.
        disconnects: how many answers the client did not read to the end.
    """

    rules: Rules = STRICT
    rejection: Rejection = field(default_factory=Rejection)
    default: Answer = field(default_factory=Answer)
    answers: deque[Answer | Refuse] = field(default_factory=deque)
    answering: Callable[[Call], Answer | Refuse] | None = None
    calls: list[Call] = field(default_factory=list)
    uploads: dict[str, bytes] = field(default_factory=dict)
    upload_count: int = 0
    upload_refusal: Refuse | None = None
    disconnects: int = 0
    url: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)
    disconnected: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL; Anthropic clients take `url`."""
        return f"{self.url}/v1"

    @property
    def accepted(self) -> list[Call]:
        """The calls that broke no rule."""
        return [call for call in self.calls if call.violation is None]

    @property
    def last(self) -> Call:
        """The latest call."""
        return self.calls[-1]

    def will(self, *answers: Answer | Refuse) -> "StrictFake":
        """Queue answers for the next calls that break no rule."""
        self.answers.extend(answers)
        return self

    def reply(self, path: str, headers: dict[str, str], body: bytes) -> Reply:
        """Return the answer to a request; called by the server's threads."""
        with self._lock:
            if path == "/v1/files":
                return self._upload(headers, body)
            wire = _WIRES.get(path)
            if wire is None:
                return Reply(CHAT, error("openai", 404, f"unknown path {path}"))
            call = Call(path, headers, body)
            self.calls.append(call)
            return Reply(wire, self._answer(wire, call), _model(call))

    def _answer(self, wire: Wire, call: Call) -> Answer | Refuse:
        fault = json_fault(call.raw) if self.rules.wellformed else None
        if fault is None:
            call.seen = wire.read(call.body)
            files = frozenset(self.uploads)
            fault = next(violations(self.rules, call.seen, len(call.raw), files), None)
        call.violation = fault
        if fault is not None:
            return refuse(fault, self.rejection, wire.vendor)
        if self.answers:
            return self.answers.popleft()
        return self.default if self.answering is None else self.answering(call)

    def _upload(self, headers: dict[str, str], body: bytes) -> Reply:
        self.upload_count += 1
        if self.upload_refusal is not None:
            return Reply(CHAT, self.upload_refusal)
        file_id = f"file-{next(self._numbers):04d}"
        data = uploaded(headers["content-type"], body)
        self.uploads[file_id] = data
        told = {"id": file_id, "object": "file", "bytes": len(data), "created_at": 1}
        told |= {"filename": "image", "purpose": "vision", "status": "processed"}
        reply = json.dumps(told).encode()
        return Reply(CHAT, Refuse(200, reply, {"Content-Type": "application/json"}))

    def client_left(self) -> None:
        """Note that a client hung up amid an answer; called by the server's threads."""
        with self._lock:
            self.disconnects += 1
        self.disconnected.set()


def _model(call: Call) -> str:
    return call.seen.model if call.seen is not None else ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


@contextmanager
def strict_fake(rules: Rules = STRICT, rejection: Rejection | None = None) -> Iterator[StrictFake]:
    """Serve a StrictFake on a free port of 127.0.0.1 for the length of a `with` block."""
    fake = StrictFake(rules=rules, rejection=rejection or Rejection())
    handler = type("BoundHandler", (Handler,), {"fake": fake})
    with _Server(("127.0.0.1", 0), handler) as server:
        fake.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            fake.stopping.set()
            server.shutdown()
            thread.join()
