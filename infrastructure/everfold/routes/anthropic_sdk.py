"""The `anthropic` SDK behind the Messages route: imported when a route is made, asked for raw events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from everfold.routes.sending import ClientPerLoop, SdkErrors
from everfold.routes.settings import RouteSettings
from everfold.routes.transports import MakeTransport, http_options
from everfold.routes.wire import Wire

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream

OFFICIAL_URL = "https://api.anthropic.com"
_PATH = "/v1/messages"
_LAST = "message_stop"
_DRAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Sdk:
    """The SDK set up for one provider.

    Attributes:
        errors: what it raises.
        clients: one for each event loop.
    """

    errors: SdkErrors
    clients: ClientPerLoop

    async def open(self, wire: Wire) -> "Events":
        """Send a body exactly as it is; return when the headers of the answer are there."""
        from anthropic import AsyncStream

        client: AsyncAnthropic = self.clients.get()
        options: Any = {"headers": {"Content-Length": str(wire.size)}}
        stream = await client.post(
            _PATH,
            content=wire,
            cast_to=object,
            options=options,
            stream=True,
            stream_cls=AsyncStream[object],
        )
        return Events(stream, self.errors.transport)


def connect(settings: RouteSettings, transport: MakeTransport | None = None) -> Sdk:
    """Return the SDK set up by settings; nothing is sent yet, and no request is ever repeated by it.

    Nothing that the SDK would take from its own environment variables is sent. The HTTP client is
    given, since the SDK's own one closes itself in whatever loop runs when it is collected.

    Raises:
        ImportError: the SDK is not installed; the message names the extra.
    """
    anthropic, httpx = _modules()
    base_url = (settings.base_url or OFFICIAL_URL).rstrip("/").removesuffix("/v1")

    def make() -> Any:
        timeout = anthropic.Timeout(None, connect=settings.connect_s)
        client = anthropic.AsyncAnthropic(
            api_key=settings.wire_key(),
            base_url=base_url,
            max_retries=0,
            timeout=timeout,
            http_client=anthropic.DefaultAsyncHttpxClient(**http_options(transport, timeout)),
            default_headers=dict(settings.headers),
        )
        # ANTHROPIC_CUSTOM_HEADERS is laid under the given ones, and only here it can be left out.
        client._custom_headers = dict(settings.headers)
        return client

    errors = SdkErrors(
        status=anthropic.APIStatusError,
        timeout=anthropic.APITimeoutError,
        connection=anthropic.APIConnectionError,
        other=anthropic.AnthropicError,
        transport=(httpx.TransportError,),
    )
    return Sdk(errors, ClientPerLoop(make))


def _modules() -> tuple[ModuleType, ModuleType]:
    try:
        import anthropic
        import httpx2
    except ImportError as error:
        raise ImportError(
            "this route needs the Anthropic SDK; install it with: pip install 'everfold[anthropic]'"
        ) from error
    return anthropic, httpx2


class Events:
    """The events of an answer as they come.

    The SDK's own iteration skips pings and unnamed events; here a ping is a sign of life, and
    nothing that a gateway sends without a name is lost.
    """

    def __init__(
        self, stream: "AsyncStream[object]", transport: tuple[type[Exception], ...]
    ) -> None:
        self._stream, self._transport = stream, transport

    @property
    def response(self) -> Any:
        """The HTTP response, as the OpenAI SDK's streams show it."""
        return self._stream.response

    def __aiter__(self) -> AsyncIterator[Any]:
        """Iterate over the decoded events, up to the last one of the message."""
        return self._events()

    async def _events(self) -> AsyncGenerator[Any, None]:
        sent = self._stream.raw_events(self._stream.response)
        async for one in sent:
            if not one.data:
                continue
            event = one.json()
            yield event
            if isinstance(event, Mapping) and event.get("type") == _LAST:
                await self._drain(sent)
                return

    async def _drain(self, rest: AsyncIterator[object]) -> None:
        """Read to the end, so that the connection can be used again; the answer itself is whole."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                async for _ in rest:
                    pass
        except TimeoutError:
            return
        except self._transport:
            return

    async def close(self) -> None:
        """End the request."""
        await self._stream.close()
