"""What the budget of retries answers after a failed request, and how a retry is logged."""

from everfold.llm.failure import LlmFailure
from everfold.llm.retrying import Jitter, RetryPolicy
from everfold.plugins.waterfalls import Retry
from everfold.session.deciding import AppendEvent
from everfold.session.frozen import Json


def budget_answer(
    failure: LlmFailure, retries: int, policy: RetryPolicy, jitter: Jitter
) -> Retry | None:
    """Return the retry that the budget allows, None if it allows none.

    Args:
        retries: how many retries this step has spent.
    """
    delay_ms = policy.delay_ms(failure, retries, jitter)
    return None if delay_ms is None else Retry(spends_budget=True, delay_ms=delay_ms)


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
