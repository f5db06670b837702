"""The words in which vendors refuse, and the styles R1 to R6 in which they hide why."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.providers.answers import EMPTY, Answer, Refuse
from tests.providers.rules import SIZE_KINDS, Violation

Vendor = Literal["openai", "anthropic"]
Style = Literal["R1", "R2", "R3", "R4", "R5", "R6"]


@dataclass(frozen=True)
class Rejection:
    """How size violations are refused.

    Attributes:
        style: R1 413 with `plain` as its body; R2 400 with both numbers; R3 400 that names one
            path; R4 400 without number or path; R5 200 without content; R6 a server error.
        plain: the body of R1; may be empty.
    """

    style: Style = "R2"
    plain: str = "Payload Too Large"


def refuse(violation: Violation, rejection: Rejection, vendor: Vendor) -> Answer | Refuse:
    """Return the answer to a request that breaks a rule."""
    if violation.kind not in SIZE_KINDS:
        return _plainly(violation, vendor)
    match rejection.style:
        case "R1":
            return Refuse(413, rejection.plain.encode(), {"Content-Type": "text/plain"})
        case "R5":
            return EMPTY
        case "R6":
            return Refuse(500, b"Internal Server Error", {"Content-Type": "text/plain"})
        case style:
            return error(vendor, 400, _WORDS[style](violation, vendor))


def error(vendor: Vendor, status: int, message: str, code: str | None = None) -> Refuse:
    """Return an error in the vendor's JSON."""
    if vendor == "anthropic":
        kind = {413: "request_too_large", 429: "rate_limit_error"}.get(status)
        detail = {"type": kind or "invalid_request_error", "message": message}
        body: dict[str, object] = {"type": "error", "error": detail, "request_id": "req_refused"}
    else:
        kind = "invalid_request_error"
        body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    headers = {"Content-Type": "application/json", "x-request-id": "req_refused"}
    return Refuse(status, json.dumps(body).encode(), {**headers, "request-id": "req_refused"})


def _plainly(violation: Violation, vendor: Vendor) -> Refuse:
    path, detail = violation.path, violation.detail
    match violation.kind:
        case "window" if vendor == "anthropic":
            text = f"prompt is too long: {violation.got} tokens > {violation.limit} maximum"
            return error(vendor, 400, text)
        case "window":
            text = (
                f"This model's maximum context length is {violation.limit} tokens. However, your "
                f"messages resulted in {violation.got} tokens. Please reduce the length."
            )
            return error(vendor, 400, text, "context_length_exceeded")
        case "file":
            return error(vendor, 404, f"No such File object: {detail}")
        case "type":
            declared, true = detail.split()
            text = f"{path}: The image was specified using the {declared} media type, but the image appears to be a {true} image"
        case "empty":
            text = f"{path}: text content blocks must be non-empty"
        case "pairing":
            text = f"{path}: tool call {detail!r} and its result do not pair"
        case "id" if violation.limit:
            text = f"Invalid '{path}': string too long. Expected a string with maximum length {violation.limit}, but got a string with length {violation.got} instead."
        case "id":
            text = f"{path}: String should match pattern '^[a-zA-Z0-9_-]+$', got {detail!r}"
        case "no-images":
            text = "This model does not support image inputs"
        case kind:
            text = f"{path}: invalid request: {kind} {detail}"
    return error(vendor, 400, text)


def _numbers(violation: Violation, vendor: Vendor) -> str:
    got, limit, path = violation.got, violation.limit, violation.path
    match violation.kind:
        case "body":
            return f"Request too large: {got} bytes exceeds the maximum of {limit} bytes"
        case "count" if vendor == "anthropic":
            return f"messages: too much media: 0 document pages + {got} images > {limit}"
        case "count":
            return f"Too many images in request: {got}. The maximum is {limit}."
        case "image" if vendor == "anthropic":
            return f"{path}: image exceeds {limit // 2**20} MB maximum: {got} bytes > {limit} bytes"
        case "image":
            return f"Image at {path} is too large: got {got} bytes, maximum is {limit} bytes"
        case "dims":
            return f"{path}: image dimension {got} exceeds the maximum of {limit} pixels"
        case _:
            return f"{path}: Could not process image"


def _path(violation: Violation, _vendor: Vendor) -> str:
    path, limit = violation.path, violation.limit
    match violation.kind:
        case "dims" if limit == 2000:
            return f"{path}: At least one of the image dimensions exceed max allowed size for many-image requests: {limit} pixels"
        case "dims":
            return f"{path}: At least one of the image dimensions exceed max allowed size: {limit} pixels"
        case "body" | "count":
            return f"{path or 'messages'}: request has too many or too large images"
        case _:
            return f"{path}: Invalid image"


def _vaguely(violation: Violation, _vendor: Vendor) -> str:
    return "Could not process image" if violation.kind != "body" else "Images are too large"


_WORDS: dict[str, Callable[[Violation, Vendor], str]] = {
    "R2": _numbers,
    "R3": _path,
    "R4": _vaguely,
}
