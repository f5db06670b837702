"""The OpenAI SDK: its client, its errors, and streaming requests through it."""

from collections.abc import Callable
from typing import Any

from everfold.routes.sending import ClientPerLoop, EventStream, Opener, SdkErrors
from everfold.routes.settings import RouteSettings

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
_JSON = {"headers": {"Content-Type": "application/json"}}


def clients(settings: RouteSettings) -> ClientPerLoop:
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
            # A redirect would take the conversation, and secret headers, to another server.
            http_client=DefaultAsyncHttpxClient(timeout=timeout, follow_redirects=False),
            default_headers=dict(settings.headers),
        )
        client.organization = client.project = client.admin_api_key = None
        # OPENAI_CUSTOM_HEADERS is laid under the given ones, and only here it can be left out.
        client._custom_headers = dict(settings.headers)
        return client

    return ClientPerLoop(make)


def streaming(client: Callable[[], AsyncOpenAI], path: str, wire: bytes) -> Opener:
    """Return what posts exactly `wire` and opens the answer's stream of events."""

    async def opened() -> EventStream:
        options: Any = _JSON
        return await client().post(
            path,
            content=wire,
            cast_to=object,
            options=options,
            stream=True,
            stream_cls=AsyncStream[object],
        )

    return opened
