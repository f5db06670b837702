"""Suspects the size of a request that fails again and again without a reason (field report A11).

Beyond some size providers answer with server errors, empty answers or nothing at all. The unchanged
request is worth two retries; then its pictures are the likeliest cause.
"""

from collections import OrderedDict
from dataclasses import replace

from everfold.llm.failure import FailureCode, LlmFailure
from everfold.routes.counting import half_of_bytes, offload_required, omittable
from everfold.routes.limits import RouteLimits
from everfold.routes.rejections import Sent
from everfold.routes.wire import Wire

MAX_UNCHANGED = 3
"""How often an unchanged request may fail without a reason: the first time and two retries."""

_REMEMBERED = 64
_SILENT = frozenset(
    (
        FailureCode.SERVER,
        FailureCode.EMPTY_RESPONSE,
        FailureCode.TIMEOUT,
        FailureCode.FIRST_CHUNK_TIMEOUT,
        FailureCode.TRANSPORT,
    )
)


class Suspicion:
    """Counts silent failures of large requests; it only ever changes what is reported."""

    def __init__(self) -> None:
        self._failures: OrderedDict[bytes, int] = OrderedDict()

    def judged(
        self, failure: LlmFailure, sent: Sent, wire: Wire, limits: RouteLimits
    ) -> LlmFailure:
        """Return the failure, or a request to omit half of the pictures' bytes if it came too often."""
        limit = limits.silent_failure_bytes
        is_suspect = limit is not None and wire.size > limit and omittable(sent.images) > 0
        if failure.code not in _SILENT or not is_suspect:
            return failure
        if self._count(wire.digest()) < MAX_UNCHANGED:
            return failure
        said = f"{failure.message}; the same {wire.size} bytes failed {MAX_UNCHANGED} times"
        found = offload_required(said, half_of_bytes(sent.images)).failure
        return replace(found, status=failure.status, request_id=failure.request_id)

    def _count(self, digest: bytes) -> int:
        count = self._failures.pop(digest, 0) + 1
        if count < MAX_UNCHANGED:
            self._failures[digest] = count
        while len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)
        return count
