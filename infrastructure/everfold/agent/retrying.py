"""When a failed request is sent again unchanged, how long to wait before, and how that is logged."""

from collections.abc import Callable

from everfold.agent.settings import RetryPolicy
from everfold.llm.failure import LlmFailure
from everfold.plugins.waterfalls import Retry
from everfold.session.deciding import AppendEvent
from everfold.session.frozen import Json

Jitter = Callable[[], float]
"""Gives a number from 0 to 1, so that many clients do not come back at once."""


def budget_answer(
    failure: LlmFailure, retries: int, policy: RetryPolicy, jitter: Jitter
) -> Retry | None:
    """Return the retry that the budget allows, None if it allows none.

    The provider's own wish to wait is honoured; one beyond our patience ends the turn.

    Args:
        retries: how many retries this step has spent.
    """
    if not failure.is_retryable or retries >= policy.max_retries:
        return None
    own_ms = min(policy.base_ms * 2**retries, policy.cap_ms)
    delay_ms = int(own_ms * (0.5 + jitter() / 2))
    asked_ms = failure.provider_retry_after_ms
    if asked_ms is not None:
        if asked_ms > policy.patience_ms:
            return None
        delay_ms = max(delay_ms, asked_ms)
    return Retry(spends_budget=True, delay_ms=delay_ms)


def retry_event(place: Json, failure: LlmFailure, answer: Retry, facts: Json) -> AppendEvent:
    """Return the wish to log that a retry is planned.

    Args:
        place: turn and step.
        facts: `retryId`, `provider`, `retry` and `maxRetries`.
    """
    data = {
        **place,
        **facts,
        "mode": "normal",
        "policyKey": "provider",
        "delayMs": answer.delay_ms,
        "failure": failure.to_json(),
    }
    return AppendEvent("llm/retry", data)


def retry_started(place: Json, facts: Json) -> AppendEvent:
    """Return the wish to log that a retry is under way."""
    data = {**place, "retryId": facts["retryId"], "retry": facts["retry"]}
    return AppendEvent("llm/retry-started", data)
