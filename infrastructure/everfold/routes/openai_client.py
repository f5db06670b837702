"""The OpenAI SDK: its client, its errors, and streaming requests through it."""

from collections.abc import Callable
from typing import Any

from everfold.llm.failure import FailureCode, LlmError, LlmFailure
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
_NO_KEY = "no-key"
_JSON = {"headers": {"Content-Type": "application/json"}}


def clients(settings: RouteSettings) -> ClientPerLoop:
    """Return the clients of a route; they neither retry nor time out by themselves.

    What the SDK would take from its own environment variables goes to no other server. The HTTP
    client is given, since the SDK's own one closes itself in whatever loop runs when it is collected.
    """

    def make() -> AsyncOpenAI:
        timeout = Timeout(None, connect=settings.connect_s)
        client = AsyncOpenAI(
            api_key=_key(settings),
            base_url=settings.base_url or OFFICIAL_URL,
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAsyncHttpxClient(timeout=timeout),
            default_headers=dict(settings.headers),
        )
        client.organization = client.project = None
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


def _key(settings: RouteSettings) -> str:
    key = settings.key()
    if key is not None:
        return key
    if settings.base_url is None:
        named = settings.api_key_env or "api_key"
        text = f"route {settings.provider!r} has no API key; set {named}"
        raise LlmError(LlmFailure(text, FailureCode.AUTH))
    return _NO_KEY
