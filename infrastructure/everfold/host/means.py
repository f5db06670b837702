"""The clock and the ids of a real host."""

import os
import time
from base64 import urlsafe_b64encode

from everfold.session.deciding import MAX_EVENT_BYTES, DecisionMeans


def now_ms() -> int:
    """Return the time in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def fresh_id() -> str:
    """Return 96 random bits as 16 characters: each is stored with every event of its batch."""
    return urlsafe_b64encode(os.urandom(12)).decode("ascii")


def system_means(*, max_event_bytes: int = MAX_EVENT_BYTES) -> DecisionMeans:
    """Return the system's clock and random ids."""
    return DecisionMeans(clock=now_ms, new_id=fresh_id, max_event_bytes=max_event_bytes)
