"""When a failed request may be sent again unchanged, and how long to wait before."""

from collections.abc import Callable
from dataclasses import dataclass

from everfold.llm.failure import LlmFailure

Jitter = Callable[[], float]
"""Gives a number from 0 to 1, so that many clients do not come back at once."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a failed request is sent again: that of a step, or of a summary.

    Attributes:
        max_retries: how many times the unchanged request may be sent again.
        base_ms: the first pause; each further one is twice as long.
        cap_ms: the longest pause of our own choosing.
        patience_ms: a provider that asks for a longer wait than this is not asked again.
    """

    max_retries: int = 2
    base_ms: int = 500
    cap_ms: int = 30_000
    patience_ms: int = 120_000

    def delay_ms(self, failure: LlmFailure, retries: int, jitter: Jitter) -> int | None:
        """Return how long to wait before the request is sent again, None if it is not.

        The provider's own wish to wait is honoured, up to our patience.

        Args:
            retries: how many there were already.
        """
        if not failure.is_retryable or retries >= self.max_retries:
            return None
        own_ms = min(self.base_ms * 2**retries, self.cap_ms)
        delay_ms = int(own_ms * (0.5 + jitter() / 2))
        asked_ms = failure.provider_retry_after_ms
        if asked_ms is None:
            return delay_ms
        return None if asked_ms > self.patience_ms else max(delay_ms, asked_ms)
