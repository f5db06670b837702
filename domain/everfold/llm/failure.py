"""Why a request to a model failed, in words that every route and plugin shares."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_MAX_WHOLE = 2**53 - 1


class FailureCode(StrEnum):
    """The stable codes of failures; a provider's own code never stands here."""

    IMAGE_OFFLOAD_REQUIRED = "IMAGE_OFFLOAD_REQUIRED"
    CONTEXT_WINDOW_EXCEEDED = "CONTEXT_WINDOW_EXCEEDED"
    RATE_LIMIT = "RATE_LIMIT"
    AUTH = "AUTH"
    TIMEOUT = "TIMEOUT"
    FIRST_CHUNK_TIMEOUT = "FIRST_CHUNK_TIMEOUT"
    SERVER = "SERVER"
    TRANSPORT = "TRANSPORT"
    INVALID_REQUEST = "INVALID_REQUEST"
    UNSUPPORTED_CONTENT = "UNSUPPORTED_CONTENT"
    EMPTY_RESPONSE = "EMPTY_RESPONSE"
    MALFORMED_RESPONSE = "MALFORMED_RESPONSE"
    CONTENT_FILTER = "CONTENT_FILTER"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"


RETRYABLE = frozenset(
    (
        FailureCode.RATE_LIMIT,
        FailureCode.TIMEOUT,
        FailureCode.FIRST_CHUNK_TIMEOUT,
        FailureCode.SERVER,
        FailureCode.TRANSPORT,
        FailureCode.EMPTY_RESPONSE,
        FailureCode.MALFORMED_RESPONSE,
    )
)
"""Failures after which the same request may be sent again."""


@dataclass(frozen=True, slots=True)
class ImagePlace:
    """An occurrence of an image in a request; `index` counts all images of the message from 0 (R203)."""

    message_id: str
    index: int


@dataclass(frozen=True, slots=True)
class LlmFailure:
    """A failed request (field reference, section 2).

    Attributes:
        message: for people; never holds a key or an authorization header.
        code: a `FailureCode`.
        status: the HTTP status, where there was one.
        provider_retry_after_ms: how long the provider asks to wait.
        request_id: the provider's id of the request.
        offload_images: how many more of the oldest images must go; only with
            IMAGE_OFFLOAD_REQUIRED, and only if it is a whole number from 1 (R251, R252).
        at_fault: the images that are refused, where that is known; not part of the log.
        suspects: images of which one is refused, where that is all that is known; likewise.
    """

    message: str
    code: str
    status: int | None = None
    provider_retry_after_ms: int | None = None
    request_id: str | None = None
    offload_images: int | None = None
    at_fault: tuple[ImagePlace, ...] = field(default=(), compare=False)
    suspects: tuple[ImagePlace, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        count = self.offload_images
        is_count = type(count) is int and 1 <= count <= _MAX_WHOLE
        if count is not None and not is_count:
            object.__setattr__(self, "offload_images", None)

    @property
    def is_retryable(self) -> bool:
        """Whether the unchanged request may be sent again."""
        return self.code in RETRYABLE

    def to_json(self) -> dict[str, Any]:
        """Return the failure with the wire's field names."""
        fields = {
            "message": self.message,
            "code": str(self.code),
            "status": self.status,
            "providerRetryAfterMs": self.provider_retry_after_ms,
            "requestId": self.request_id,
            "offloadImages": self.offload_images,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "LlmFailure":
        """Return the failure that a log holds; facts of the wrong form are left out."""
        message, code = data.get("message"), data.get("code")
        return cls(
            message=message if isinstance(message, str) else "unknown failure",
            code=code if isinstance(code, str) else FailureCode.UNKNOWN,
            status=_whole(data.get("status")),
            provider_retry_after_ms=_whole(data.get("providerRetryAfterMs")),
            request_id=data.get("requestId") if isinstance(data.get("requestId"), str) else None,
            offload_images=data.get("offloadImages"),
        )


class LlmError(Exception):
    """Carries a failure from a route to whoever asked it."""

    def __init__(self, failure: LlmFailure) -> None:
        super().__init__(f"{failure.code}: {failure.message}")
        self.failure = failure


def _whole(value: object) -> int | None:
    return value if type(value) is int else None
