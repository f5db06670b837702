"""The patience of a real host: pauses that end when somebody asks to stop."""

import asyncio
import random

from everfold.llm.retrying import RetryPolicy
from everfold.plugins.waterfalls import Cancellation
from everfold.projections.compaction.retrying import Patience

_LOOK_S = 0.1
"""A cancellation can only be looked at; it is, as often as this."""


async def pause(delay_ms: int, cancellation: Cancellation) -> None:
    """Wait so many milliseconds, or until somebody asks to stop."""
    clock = asyncio.get_running_loop().time
    end = clock() + delay_ms / 1000
    while not cancellation.is_set and (left_s := end - clock()) > 0:
        await asyncio.sleep(min(left_s, _LOOK_S))


def patience(policy: RetryPolicy) -> Patience:
    """Return the patience of a host that retries by a policy."""
    return Patience(policy, pause, random.random)
