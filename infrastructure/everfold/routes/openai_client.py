"""The OpenAI SDK: its client, its errors, and streaming requests through it."""

from collections.abc import Callable
from typing import Any

from everfold.routes.sending import ClientPerLoop, EventStream, Opener, SdkErrors
from everfold.routes.settings import RouteSettings
from everfold.routes.transports import MakeTransport, http_options
from everfold.routes.wire import Wire

try:
    from openai import (
        APIConnectionError,
        APIError,
        APIStatusError,
        APITimeoutError,
        AsyncOpenAI,
        AsyncStream,
        DefaultAsyncHttpxClient,
        Timeout,
    )
except ImportError as error:
    raise ImportError(
        "this route needs the OpenAI SDK; install it with: pip install 'everfold[openai]'"
    ) from error

ERRORS = SdkErrors(APIStatusError, APITimeoutError, APIConnectionError, APIError)
OFFICIAL_URL = "https://api.openai.com/v1"


def clients(settings: RouteSettings, transport: MakeTransport | None = None) -> ClientPerLoop:
    """Return the clients of a route; they neither retry nor time out by themselves.

    Nothing that the SDK would take from its own environment variables is sent. The HTTP client is
    given, since the SDK's own one closes itself in whatever loop runs when it is collected.
    """

    def make() -> AsyncOpenAI:
        timeout = Timeout(None, connect=settings.connect_s)
        client = AsyncOpenAI(
            api_key=settings.wire_key(),
            base_url=settings.base_url or OFFICIAL_URL,
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAsyncHttpxClient(**http_options(transport, timeout)),
            default_headers=dict(settings.headers),
        )
        client.organization = client.project = client.admin_api_key = None
        # OPENAI_CUSTOM_HEADERS is laid under the given ones, and only here it can be left out.
        client._custom_headers = dict(settings.headers)
        return client

    return ClientPerLoop(make)


def streaming(client: Callable[[], AsyncOpenAI], path: str, wire: Wire) -> Opener:
    """Return what posts exactly `wire` and opens the answer's stream of events."""

    async def opened() -> EventStream:
        length = str(wire.size)
        headers = {"Content-Type": "application/json", "Content-Length": length}
        options: Any = {"headers": headers}
        return await client().post(
            path,
            content=wire,
            cast_to=object,
            options=options,
            stream=True,
            stream_cls=AsyncStream[object],
        )

    return opened
