"""Summary requests that fail for reasons that may pass are sent again, as those of a turn are.

The rule to keep: nothing here waits by itself. A host lends its patience, as it lends its models.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from everfold.llm.assembly import mended_failure
from everfold.llm.failure import LlmFailure
from everfold.llm.retrying import Jitter, RetryPolicy
from everfold.plugins.waterfalls import Cancellation
from everfold.session.frozen import Json

Pause = Callable[[int, Cancellation], Awaitable[None]]
"""Waits so many milliseconds; comes back sooner when somebody asks to stop."""


async def no_pause(delay_ms: int, cancellation: Cancellation) -> None:
    """Go on at once."""


@dataclass(frozen=True, slots=True)
class Patience:
    """What a host lends for requests to be sent again.

    Attributes:
        policy: how often, and how long to wait before; the one that its agents have.
        pause: waits.
    """

    policy: RetryPolicy = field(default_factory=lambda: RetryPolicy(max_retries=0))
    pause: Pause = no_pause
    jitter: Jitter = lambda: 0.0


IMPATIENT = Patience()
"""Sends nothing again."""


@dataclass(frozen=True, slots=True)
class SummaryRetry:
    """One retry that is about to be made.

    Attributes:
        number: which one of this request, from 1.
        most: how many there may be.
    """

    provider: str
    number: int
    most: int
    delay_ms: int
    failure: LlmFailure

    def fields(self) -> dict[str, Json]:
        """Return it with the field names of the log, which are those of `llm/retry`."""
        return {
            "provider": self.provider,
            "retry": self.number,
            "maxRetries": self.most,
            "delayMs": self.delay_ms,
            "failure": mended_failure(self.failure).to_json(),
        }
