"""Recognises a provider's own "too large" answers and derives what can be done about them.

Vendors say it in many ways: 413 with any body or none, 400 with two numbers, with one, with the
path of one picture, or with none of these. What is recognised becomes IMAGE_OFFLOAD_REQUIRED with
the best count that follows from the text and from what was sent, or CONTEXT_WINDOW_EXCEEDED; what
is not stays what it was.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode, LlmFailure
from everfold.routes.body_paths import images_named
from everfold.routes.counting import (
    SHORTEST_LIMIT,
    Images,
    SentImage,
    beyond_omission,
    for_body,
    for_unsaid_limit,
    half,
    naming,
    offload_required,
    omittable,
    suspecting,
    through,
    too_short,
    total_bytes,
)
from everfold.routes.limits import RouteLimits

Kind = Literal["dims", "count", "image", "body", "vague"]

_OF_ONE = frozenset(("dims", "image", "vague"))
"""What is said of single pictures."""

_PAYLOAD_TOO_LARGE = 413
_CANDIDATES = frozenset((400, 404, 413, 415, 422, 429, 500, None))
"""Statuses whose text is looked at; None is an error amid a stream. Gateways wrap 400 as 500."""

_WINDOW_ALONE = frozenset((429, 500))
"""Statuses that mean something else unless the text speaks of the context window."""

_WINDOW = re.compile(
    r"context[ _-]?(length|window|size)|context limit|maximum (context|prompt) length|prompt is too long"
    r"|input is too long|input (length|tokens?|token count).{0,40}exceed|too many (input )?tokens"
    r"|token(s| count).{0,60}exceeds? the (maximum|model|limit)|exceed\w*.{0,20}(model )?token limit"
    r"|reduce the length of|request (body )?too large for .{0,80}tokens|tokens_limit_reached|string_above_max_length.{0,40}input"
)
_TAKES_NONE = re.compile(
    r"(not|n't) support (any )?(image|vision|multimodal)|image (input|content)s? (is|are) not supported"
    r"|support(s|ed)? (only )?text (only|inputs? only)|no endpoints found that support image"
    r"|not a (multimodal|vision)|unknown variant .?image_url|image_url.{0,40}only supported by"
)
_SPEAKS_OF_IMAGE = re.compile(r"\b(images?|pictures?|media|image_url|input_image)\b")
_DIMENSIONS = re.compile(r"dimension|pixels?\b|resolution|megapixel")
_COUNT = re.compile(
    r"too (many|much) (images?|media|pictures?)|(number|count) of images|at most \d+ image"
    r"|up to \d+ images?|images? per (request|prompt)|images? and documents"
    r"|images? > \d+|max\w* .{0,20}\bimages\b"
)
_TOO_LARGE = re.compile(
    r"too large|too big|exceed|larger than|max\w* size|size limit|above|over the"
)
_BODY = re.compile(
    r"(request|payload|body|entity|content|message)s?( (size|body|entity|payload|length))* ?"
    r"(is |was )?(too (large|big)|exceed)|request_too_large|payload size exceeds|maximum (request|body|payload)"
)
_FAILED = re.compile(
    r"could not|cannot|can't|unable|fail|invalid|corrupt|malformed|unsupported|decod|process"
    r"|media type|too (many|large|big)"
)
_AMOUNT = r"(\d[\d_,]*(?:\.\d+)?)\s*(bytes?|[kmg]i?b|px|pixels?)?"
_PAIR = re.compile(rf"{_AMOUNT}(?:\s+[a-z ]{{1,30}})?\s*>\s*{_AMOUNT}")
_LIMIT = re.compile(
    r"(?:max(?:imum)?|limit|at most|up to|allowed|no more than|less than|cannot exceed|exceeds?)"
    rf"[^\d.]{{0,60}}?{_AMOUNT}"
)
_LIMIT_AFTER = re.compile(rf"{_AMOUNT}\s*(?:max(?:imum)?\b|limit\b)")
_UNITS = {"kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 2**10, "mib": 2**20, "gib": 2**30}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider's refusal, as it came.

    Attributes:
        status: of the response; None for an error amid a stream.
        text: its message, or the whole body if it is not the vendor's JSON; may be empty.
        code: the vendor's own code or type.
        param: what of the body it is about, in the vendor's notation.
    """

    status: int | None
    text: str
    code: str | None = None
    request_id: str | None = None
    retry_after_ms: int | None = None
    param: str | None = None

    @property
    def names(self) -> str:
        """Every text of it that may name a part of the body."""
        return f"{self.text} {self.param or ''}"


@dataclass(frozen=True, slots=True)
class Sent:
    """The request that was refused.

    Attributes:
        body: gives the body, which is seldom looked at.
        body_bytes: the exact length of the body.
        images: its retained pictures, oldest first; their blocks are objects of `body`.
        budget: of the mode in which they travel.
    """

    body: Callable[[], Mapping[str, Any]]
    body_bytes: int
    images: tuple[SentImage, ...]
    budget: ImageBudget


def recognised(refusal: Refusal, sent: Sent, limits: RouteLimits, said: str) -> LlmFailure | None:
    """Return what a refusal means if it says that something is too large; None if it does not.

    Args:
        said: the refusal for people, free of secrets; it opens the failure's message.
    """
    if refusal.status not in _CANDIDATES:
        return None
    text = f"{refusal.text} {refusal.code or ''}".lower()
    found = _meaning(refusal, text, sent, limits, said)
    if found is None:
        return None
    return replace(found, status=refusal.status, request_id=refusal.request_id)


def _meaning(
    refusal: Refusal, text: str, sent: Sent, limits: RouteLimits, said: str
) -> LlmFailure | None:
    if _WINDOW.search(text):
        return LlmFailure(said, FailureCode.CONTEXT_WINDOW_EXCEEDED)
    if refusal.status in _WINDOW_ALONE:
        return None
    if sent.images and _TAKES_NONE.search(text):
        advice = "say so in the route's limits (images = {}), then pictures are sent as text"
        return LlmFailure(f"{said}; {advice}", FailureCode.UNSUPPORTED_CONTENT)
    kind = _kind(text, refusal.status)
    if kind is None or (not sent.images and kind != "body"):
        return None
    if kind == "body" and _is_too_short(sent, _limit(text)):
        return too_short(said, sent.body_bytes).failure
    refused = _refused(kind, _limit(text), refusal, sent)
    count = _count(kind, text, refused, sent, limits)
    if not count:
        return naming(beyond_omission(_shared(said, sent, kind)).failure, refused)
    failure = offload_required(said, count).failure
    if kind in _OF_ONE and not refused:
        return suspecting(failure, sent.images)
    return naming(failure, refused)


def _is_too_short(sent: Sent, limit: int | None) -> bool:
    """Tell whether a request with pictures is refused as too large that no limit could mean."""
    is_said = limit is not None and limit < sent.body_bytes
    return (
        bool(sent.images)
        and not is_said
        and total_bytes(sent.images, sent.body_bytes) < SHORTEST_LIMIT
    )


def _shared(said: str, sent: Sent, kind: Kind) -> str:
    """Return what was said, and how much of a body that is too large are pictures."""
    if kind != "body" or not sent.images:
        return said
    taken = sum(image.encoded_bytes for image in sent.images)
    return f"{said}; its pictures take {taken} of {sent.body_bytes} bytes"


def _kind(text: str, status: int | None) -> Kind | None:
    """Return what is too large; None if the text does not speak of size or pictures."""
    speaks_of_image = _SPEAKS_OF_IMAGE.search(text) is not None
    if speaks_of_image and _COUNT.search(text):
        return "count"
    if status == _PAYLOAD_TOO_LARGE or _BODY.search(text):
        return "body"
    if not speaks_of_image:
        return None
    if _DIMENSIONS.search(text) and "media type" not in text:
        return "dims"
    if _TOO_LARGE.search(text) and "media type" not in text:
        return "image"
    return "vague" if _FAILED.search(text) else None


def _refused(kind: Kind, limit: int | None, refusal: Refusal, sent: Sent) -> Images:
    """Return the pictures that are refused for themselves; empty if nothing says which."""
    over = [] if limit is None else [each for each in sent.images if _is_over(kind, limit, each)]
    if over or kind not in _OF_ONE:
        return over
    named = images_named(refusal.names, sent.body(), [image.block for image in sent.images])
    return [sent.images[place] for place in named]


def _is_over(kind: Kind, limit: int, image: SentImage) -> bool:
    if kind == "dims":
        return image.edge > limit
    return kind == "image" and max(image.encoded_bytes, image.raw_bytes) > limit


def _count(kind: Kind, text: str, refused: Images, sent: Sent, limits: RouteLimits) -> int | None:
    """Return how many pictures must go; None if no omission can help."""
    images = sent.images
    if omittable(images) == 0:
        return None
    limit = _limit(text)
    match kind:
        case "body":
            return _for_body(limit, sent, limits)
        case "count":
            found = _for_count(limit, sent)
        case "dims":
            found = _for_edge(limit, text, images, limits)
        case "image":
            found = _for_size(limit, images)
        case "vague":
            found = 0
    if found is None or found > 0:
        return found
    if not refused:
        return half(images)
    return through(images, lambda image: any(image is each for each in refused))


def _for_body(limit: int | None, sent: Sent, limits: RouteLimits) -> int | None:
    if limit is None or limit >= sent.body_bytes:
        return for_unsaid_limit(sent.images, sent.body_bytes)
    return for_body(sent.images, sent.body_bytes, limit, min(limits.body_quantum, -(-limit // 2)))


def _for_count(limit: int | None, sent: Sent) -> int | None:
    if limit is None or limit >= len(sent.images):
        return 0
    if len(sent.images) - omittable(sent.images) > limit:
        return None
    quantum = max(1, min(sent.budget.count_quantum, limit // 4))
    excess = -(-(len(sent.images) - limit) // quantum) * quantum
    return min(excess, omittable(sent.images))


def _for_edge(limit: int | None, text: str, images: Images, limits: RouteLimits) -> int | None:
    if limit is None:
        return 0
    count = through(images, lambda image: image.edge > limit)
    if "many" in text and limits.many_images is not None:
        fewer = len(images) - limits.many_images
        if 0 < fewer <= omittable(images):
            return min(count, fewer) if count else fewer
    return count


def _for_size(limit: int | None, images: Images) -> int | None:
    if limit is None:
        return 0
    count = through(images, lambda image: image.encoded_bytes > limit)
    return through(images, lambda image: image.raw_bytes > limit) if count == 0 else count


def _limit(text: str) -> int | None:
    """Return the limit that a text names, in bytes, pixels or pictures."""
    pair = _PAIR.search(text)
    if pair is not None:
        return _amount(pair.group(3), pair.group(4))
    for pattern in (_LIMIT, _LIMIT_AFTER):
        match = pattern.search(text)
        if match is not None:
            return _amount(match.group(1), match.group(2))
    return None


def _amount(number: str, unit: str | None) -> int:
    value = float(number.replace(",", "").replace("_", ""))
    return int(value * _UNITS.get(unit or "", 1))
