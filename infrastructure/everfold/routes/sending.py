"""Sends a request through a vendor's SDK and hands on its answer; every fault is an LlmError.

The OpenAI and the Anthropic SDK are built alike, so this serves both: errors of the same names, and
streams that are iterated and closed.
"""

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from everfold.llm.chunks import Chunk
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.routes.failures import failure_of, refusal_of, scrubbed
from everfold.routes.limits import RouteLimits
from everfold.routes.patience import Patience, Timeouts, listen
from everfold.routes.rejections import Sent
from everfold.routes.suspicion import Suspicion
from everfold.routes.wire import Wire

T = TypeVar("T")
Event = Mapping[str, Any]
_SHOWN = 200
_BROKEN_EVENT = (KeyError, TypeError, AttributeError, ValueError, IndexError)


class EventStream(Protocol):
    """An SDK's stream of decoded events, and the HTTP response that they come in."""

    @property
    def response(self) -> Any:
        """The HTTP response."""
        ...

    def __aiter__(self) -> AsyncIterator[Any]:
        """Iterate over the events."""
        ...

    async def close(self) -> None:
        """End the request."""
        ...


Opener = Callable[[], Awaitable[EventStream]]
"""Sends the request; returns when the headers of the answer are there."""


class Reader(Protocol):
    """Turns a vendor's events into chunks; one for each answer."""

    def feed(self, event: Event) -> Iterable[Chunk]:
        """Return what an event adds."""
        ...

    def end(self) -> Iterable[Chunk]:
        """Return what is left when the stream is over; the last one is a `Finish`.

        Raises:
            LlmError: the answer is empty or was cut off.
        """
        ...


class AnswerRefusedError(Exception):
    """An event of the stream says that the request failed; readers raise it."""

    def __init__(self, body: object) -> None:
        super().__init__(str(body))
        self.body = body


@dataclass(frozen=True, slots=True)
class SdkErrors:
    """The error classes of an SDK.

    Attributes:
        status: an answer with an error status: has `status_code`, `response` and `body`.
        timeout: no answer in time.
        connection: no connection, or one that broke.
        other: an error amid a stream: has `message` and `body`.
        transport: what the HTTP library raises past the SDK.
    """

    status: type[Exception]
    timeout: type[Exception]
    connection: type[Exception]
    other: type[Exception]
    transport: tuple[type[Exception], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request on its way: how to send it, what it holds, the limits that it was made under."""

    opener: Opener
    sent: Sent
    wire: Wire
    limits: RouteLimits


@dataclass
class Sender:
    """Sends the requests of one route.

    Attributes:
        secrets: texts that no failure may hold.
    """

    errors: SdkErrors
    timeouts: Timeouts = field(default_factory=Timeouts)
    secrets: tuple[str, ...] = ()
    suspicion: Suspicion = field(default_factory=Suspicion)

    async def answer(self, request: Request, reader: Reader) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks of an answer; closing the iterator ends the HTTP request.

        Raises:
            LlmError: the request failed, before or amid the answer.
        """
        patience = Patience(self.timeouts)
        try:
            async with aclosing(self._events(request, patience)) as events:
                async for event in events:
                    for chunk in self._fed(reader, event, request):
                        with patience.handing_over(chunk):
                            yield chunk
            for chunk in self._ended(reader):
                yield chunk
        except LlmError as error:
            judged = self.suspicion.judged(
                error.failure, request.sent, request.wire, request.limits
            )
            raise LlmError(judged) from error.__cause__

    async def call(
        self, step: Awaitable[T], seconds: float, code: FailureCode, about: Request
    ) -> T:
        """Await something that the SDK does; its errors become LlmErrors, lateness one with `code`."""
        try:
            async with asyncio.timeout(seconds):
                return await self._translated(step, code, about)
        except TimeoutError as error:
            raise LlmError(LlmFailure(f"no answer within {seconds:g} s", code)) from error

    async def _translated(self, step: Awaitable[T], late: FailureCode, about: Request) -> T:
        """Await something that the SDK does; its errors become LlmErrors, its own timeout one with `late`."""
        errors = self.errors
        try:
            return await step
        except errors.timeout as error:
            text = f"the connection{_server_of(error)} could not be made in time"
            raise LlmError(LlmFailure(text, late)) from error
        except errors.status as error:
            raise LlmError(self._refused(error, about)) from None
        except (errors.connection, *errors.transport) as error:
            reason = scrubbed(f"{error} {error.__cause__ or ''}", self.secrets)
            failure = LlmFailure(
                f"the connection{_server_of(error)} failed: {reason}", FailureCode.TRANSPORT
            )
            raise LlmError(failure) from None
        except errors.other as error:
            body = getattr(error, "body", None) or str(error)
            raise LlmError(self._refused_amid(body, about)) from None
        except ValueError as error:
            raise LlmError(malformed(f"an event is not JSON: {error}", self.secrets)) from error

    async def _events(self, request: Request, patience: Patience) -> AsyncGenerator[Event, None]:
        first, late = FailureCode.FIRST_CHUNK_TIMEOUT, FailureCode.TIMEOUT
        stream = await patience.wait(self._translated(request.opener(), first, request))
        try:
            if _is_page(stream):
                raise LlmError(malformed("a web page came in place of an answer; check base_url"))
            listen(stream.response, patience.hear)
            iterator = stream.__aiter__()
            while True:
                step = self._translated(anext(iterator, None), late, request)
                event = await patience.wait(step)
                if event is None:
                    break
                yield event
        finally:
            await stream.close()

    def _fed(self, reader: Reader, event: Event, about: Request) -> list[Chunk]:
        try:
            return list(reader.feed(event))
        except AnswerRefusedError as error:
            raise LlmError(self._refused_amid(error.body, about)) from None
        except _BROKEN_EVENT as error:
            # Hidden before it is cut, so that no part of a key is left at the cut.
            shown = scrubbed(str(event), self.secrets)[:_SHOWN]
            reason = f"{type(error).__name__}: {error} in {shown}"
            raise LlmError(malformed(reason, self.secrets)) from error

    def _ended(self, reader: Reader) -> list[Chunk]:
        try:
            return list(reader.end())
        except _BROKEN_EVENT as error:
            reason = f"{type(error).__name__} at its end: {error}"
            raise LlmError(malformed(reason, self.secrets)) from error

    def _refused_amid(self, body: object, about: Request) -> LlmFailure:
        refusal = refusal_of(None, {}, body)
        return failure_of(refusal, about.sent, about.limits, self.secrets)

    def _refused(self, error: Exception, about: Request) -> LlmFailure:
        response: Any = getattr(error, "response", None)
        body = getattr(error, "body", None)
        if body is None:
            body = response.text
        refusal = refusal_of(response.status_code, response.headers, body)
        return failure_of(refusal, about.sent, about.limits, self.secrets)


class ClientPerLoop:
    """Gives each event loop its own SDK client: connections of a loop that is over cannot be used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}

    def get(self) -> Any:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:
                # A client holds on to its loop, so nothing but this lets both go.
                for over in [known for known in self._clients if known.is_closed()]:
                    del self._clients[over]
                self._clients[loop] = self._make()
            return self._clients[loop]

    async def close(self) -> None:
        """Close the running loop's client."""
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()


def _is_page(stream: EventStream) -> bool:
    """Tell whether a log-in page of a proxy, or the like, came with a status of success."""
    headers: Mapping[str, str] = stream.response.headers
    return headers.get("content-type", "").startswith("text/html")


def _server_of(error: Exception) -> str:
    """Return which server an SDK could not talk to, without anything secret in its URL; "" if unknown."""
    try:
        request: Any = getattr(error, "request", None)
        address: bytes = request.url.netloc
    except (RuntimeError, AttributeError):
        return ""
    return f" to {address.decode('ascii', 'replace')}"


def malformed(reason: str, secrets: Sequence[str] = ()) -> LlmFailure:
    """Return the failure of an answer that cannot be understood."""
    said = scrubbed(reason, secrets)
    return LlmFailure(f"the answer is malformed: {said}", FailureCode.MALFORMED_RESPONSE)


def empty() -> LlmFailure:
    """Return the failure of an answer with nothing in it."""
    return LlmFailure("the answer holds no content", FailureCode.EMPTY_RESPONSE)
