"""How the HTTP clients of the SDKs are made."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

MakeTransport = Callable[[], "AsyncBaseTransport"]
"""Makes what stands between an SDK's client and the socket: one for each client, closed with it."""


def http_options(transport: MakeTransport | None, timeout: Any) -> dict[str, Any]:
    """Return how the HTTP client of an SDK is made; without a transport the SDK makes its own.

    A redirect would take the conversation, and secret headers, to another server.
    """
    given = {} if transport is None else {"transport": transport()}
    return {"timeout": timeout, "follow_redirects": False, **given}
