"""Turns what SDKs raise and providers answer into failures with stable codes, free of secrets."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any

from everfold.llm.failure import FailureCode, LlmFailure
from everfold.llm.wellformed import well_formed
from everfold.routes.body_paths import image_pointed_at
from everfold.routes.counting import naming
from everfold.routes.limits import RouteLimits
from everfold.routes.rejections import Refusal, Sent, recognised

_MAX_TEXT = 500
_LONGEST_MS = 2**53 - 1
_KEYS = re.compile(
    r"\b(?:sk|pk|rk|key|gsk|xai)-[A-Za-z0-9_\-*]{6,}|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{6,}"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_HIDDEN = "[secret]"
_SERVER_ERROR = 500
_REDIRECTS = range(300, 400)
_MOVED = "set base_url to the address that is meant"
_BY_STATUS = {
    401: FailureCode.AUTH,
    402: FailureCode.AUTH,
    403: FailureCode.AUTH,
    408: FailureCode.TIMEOUT,
    429: FailureCode.RATE_LIMIT,
    504: FailureCode.TIMEOUT,
}
_BY_CODE = {
    "insufficient_quota": FailureCode.AUTH,
    "authentication_error": FailureCode.AUTH,
    "permission_error": FailureCode.AUTH,
    "invalid_api_key": FailureCode.AUTH,
    "billing_error": FailureCode.AUTH,
    "content_filter": FailureCode.CONTENT_FILTER,
    "content_policy_violation": FailureCode.CONTENT_FILTER,
    "rate_limit_error": FailureCode.RATE_LIMIT,
    "rate_limit_exceeded": FailureCode.RATE_LIMIT,
    "overloaded_error": FailureCode.SERVER,
    "server_error": FailureCode.SERVER,
    "api_error": FailureCode.SERVER,
    "timeout_error": FailureCode.TIMEOUT,
    "invalid_request_error": FailureCode.INVALID_REQUEST,
    "not_found_error": FailureCode.INVALID_REQUEST,
}
_DECISIVE = frozenset((FailureCode.AUTH, FailureCode.CONTENT_FILTER))
UNKNOWN_MODEL = "check the model's name and the base_url of this route"
"""Ends the message of a failure that says that there is no such model, or nothing at this address."""

_NO_MODEL = re.compile(
    r"model\W{0,4}[\w./:@-]*\W{0,3}(was |is |has been |does )?"
    r"(not (found|exist)|n't exist|decommissioned|deprecated)"
    r"|(not a valid|invalid|unknown|no such) model\b|model (id|identifier|name) is invalid"
    r"|model_not_found|deployment ?not ?found|no endpoints found for"
)
_NO_ADDRESS = frozenset((404, 405))
_OTHER_THINGS = re.compile(r"\bfiles?\b|\bfile[-_]|response_id|\bimage")
"""What else may be missing than a model or an address."""

_MODERATED = re.compile(r"moderation|flagged|content (management )?policy")


def failure_of(
    refusal: Refusal, sent: Sent, limits: RouteLimits, secrets: Sequence[str] = ()
) -> LlmFailure:
    """Return the failure that a refused request is; its own "too large" is understood (`rejections`)."""
    said = _said(refusal, secrets)
    if refusal.request_id is not None:
        refusal = replace(refusal, request_id=scrubbed(refusal.request_id, secrets))
    found = recognised(refusal, sent, limits, said)
    if found is not None:
        return found
    failure = LlmFailure(
        said,
        _code(refusal),
        refusal.status,
        refusal.retry_after_ms,
        refusal.request_id,
    )
    if failure.code != FailureCode.INVALID_REQUEST:
        return failure
    if _is_about_model(refusal):
        return replace(failure, message=f"{said}; {UNKNOWN_MODEL}")
    blocks = [image.block for image in sent.images]
    place = image_pointed_at(refusal.names, sent.body(), blocks)
    return failure if place is None else naming(failure, [sent.images[place]])


def _is_about_model(refusal: Refusal) -> bool:
    """Tell whether there is no such model, or nothing at all at this address."""
    text = f"{refusal.text} {refusal.code or ''}".lower()
    if _NO_MODEL.search(text):
        return True
    return refusal.status in _NO_ADDRESS and _OTHER_THINGS.search(text) is None


def refusal_of(
    status: int | None, headers: Mapping[str, str], body: object, now_s: float | None = None
) -> Refusal:
    """Return a refusal from the parts of a response.

    Args:
        body: the decoded JSON, or text if it is none.
        now_s: seconds since 1970, for a `Retry-After` that is a date; now if not given.
    """
    error = body.get("error", body) if isinstance(body, Mapping) else body
    text, code = _words(error)
    param = error.get("param") if isinstance(error, Mapping) else None
    request_id = headers.get("x-request-id") or headers.get("request-id") or _request_id(body)
    now = time.time() if now_s is None else now_s
    named = param if isinstance(param, str) else None
    return Refusal(status, text, code, request_id, retry_after_ms(headers, now), named)


def retry_after_ms(headers: Mapping[str, str], now_s: float) -> int | None:
    """Return how long a provider asks to wait, from `retry-after-ms` or `retry-after` (seconds or a date)."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return _wait_ms(exact)
    said = headers.get("retry-after")
    seconds = _number(said)
    if seconds is None and said:
        try:
            seconds = parsedate_to_datetime(said).timestamp() - now_s
        except (ValueError, OverflowError):
            return None
    return None if seconds is None else _wait_ms(seconds * 1000)


def _wait_ms(milliseconds: float) -> int:
    return round(min(max(0.0, milliseconds), _LONGEST_MS))


def scrubbed(text: str, secrets: Sequence[str] = ()) -> str:
    """Return text on one line, cut to what people read, with what looks like a key hidden."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, _HIDDEN)
    line = well_formed(_CONTROL.sub(" ", _KEYS.sub(_HIDDEN, text)).strip())[0]
    return line if len(line) <= _MAX_TEXT else f"{line[:_MAX_TEXT]}…"


def _said(refusal: Refusal, secrets: Sequence[str]) -> str:
    where = "the provider" if refusal.status is None else f"the provider answered {refusal.status}"
    if refusal.status is not None and refusal.status in _REDIRECTS:
        return f"{where}: it points elsewhere, and nothing is sent there; {_MOVED}"
    text = scrubbed(refusal.text, secrets)
    return f"{where}: {text}" if text else where


def _code(refusal: Refusal) -> FailureCode:
    by_code = _BY_CODE.get(refusal.code or "")
    if by_code is not None and by_code in _DECISIVE:
        return by_code
    if refusal.status is None:
        return by_code or _by_number(refusal.code) or FailureCode.SERVER
    if refusal.status == 403 and _MODERATED.search(refusal.text.lower()):
        return FailureCode.CONTENT_FILTER
    return _by_status(refusal.status)


def _by_number(code: str | None) -> FailureCode | None:
    """Return the meaning of a status that stands as the code of an error amid a stream."""
    return _by_status(int(code)) if code is not None and re.fullmatch(r"[45]\d\d", code) else None


def _by_status(status: int) -> FailureCode:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return FailureCode.SERVER if status >= _SERVER_ERROR else FailureCode.INVALID_REQUEST


def _words(error: object) -> tuple[str, str | None]:
    """Return message and code of a vendor's error object, or the text that stands in its place."""
    if isinstance(error, str):
        return error, None
    if not isinstance(error, Mapping):
        return "", None
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    details = error.get("metadata")
    raw = details.get("raw") if isinstance(details, Mapping) else None
    text = f"{message} {raw}" if isinstance(raw, str) else str(message)
    code = error.get("code") or error.get("type")
    return text, None if code is None else str(code)


def _request_id(body: object) -> str | None:
    found: Any = body.get("request_id") if isinstance(body, Mapping) else None
    return found if isinstance(found, str) else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None
