"""How the HTTP clients of the SDKs are made."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from everfold.routes.settings import NO_KEY

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

MakeTransport = Callable[[], "AsyncBaseTransport"]
"""Makes what stands between an SDK's client and the socket: one for each client, closed with it."""

_STANDING_IN = (("Authorization", f"Bearer {NO_KEY}"), ("X-Api-Key", NO_KEY))


def http_options(transport: MakeTransport | None, timeout: Any) -> dict[str, Any]:
    """Return how the HTTP client of an SDK is made; without a transport the SDK makes its own.

    A redirect would take the conversation, and secret headers, to another server. A server that
    wants no key is sent none, though the SDKs make no client without one.
    """
    given = {} if transport is None else {"transport": transport()}
    hooks = {"request": [_without_stand_in]}
    return {"timeout": timeout, "follow_redirects": False, "event_hooks": hooks, **given}


async def _without_stand_in(request: Any) -> None:
    """Take the key that stands for none out of a request."""
    for name, value in _STANDING_IN:
        if request.headers.get(name) == value:
            del request.headers[name]
