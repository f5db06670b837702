"""Reports from the field, group J: time zones and clocks."""

import os
import time
from collections.abc import Iterator
from itertools import count, cycle

import pytest

from everfold.host.means import now_ms, system_means
from everfold.host.opening import open_sessions
from everfold.session.deciding import DecisionMeans
from everfold.session.frozen import Json
from tests.cli.programs import run_process
from tests.field_reports.kit import names
from tests.host.kit import hello
from tests.postgres import with_query
from tests.processes import Worker

ZONES = ["Pacific/Auckland", "America/New_York", "UTC"]


def in_zone(url: str, zone: str) -> tuple[Json, int]:
    """In a time zone, make a session of one message; return when it says that this was."""
    os.environ["TZ"] = zone
    time.tzset()
    with open_sessions(url) as sessions:
        session = sessions.create(f"s {zone[:7].replace('/', ' ')}")
        (event,) = sessions.append_batch(session.id, [hello()])
        return session.header["createdAt"], event.time


def test_j1_times_are_the_true_instant_in_every_zone(store_url: str) -> None:
    url = store_url
    if url.startswith("postgresql:"):
        url = with_query(url, options="-c TimeZone=America/New_York")
    before = now_ms()

    times = [Worker(in_zone, url, zone).result() for zone in ZONES]

    after = now_ms()
    flat = [moment for pair in times for moment in pair]
    assert flat == sorted(flat)
    assert before <= flat[0]
    assert flat[-1] <= after
    with open_sessions(store_url) as sessions:
        assert sorted(s.last.time for s in sessions.summaries()) == [
            updated for _, updated in times
        ]


def test_j1_people_are_shown_utc_in_every_zone(store_url: str) -> None:
    noon = DecisionMeans(clock=lambda: 1_700_000_000_000, new_id=system_means().new_id)
    with open_sessions(store_url, means=noon) as sessions:
        sessions.create("s")
        sessions.append_batch("s", [hello()])

    outputs = {run_process("list", "--store", store_url, env={"TZ": zone}).out for zone in ZONES}

    (shown,) = outputs
    assert shown.count("2023-11-14 22:13:20Z") == 2


def clocks() -> dict[str, Iterator[int]]:
    """Return clocks that tick coarsely, stand still, run backwards, and jump."""
    return {
        "seconds": (1_700_000_000_000 + number // 50 * 1000 for number in count()),
        "milliseconds": (1_700_000_000_000 + number // 5 for number in count()),
        "still": cycle([1_700_000_000_000]),
        "backwards": count(1_700_000_000_000, -1),
        "jumping": cycle([1_700_000_000_000, 0, 4_000_000_000_000]),
    }


@pytest.mark.parametrize("name", clocks())
def test_j2_no_clock_makes_an_append_stale(store_url: str, name: str) -> None:
    clock = clocks()[name]
    means = DecisionMeans(clock=lambda: next(clock), new_id=system_means().new_id)
    with (
        open_sessions(store_url, means=means) as one,
        open_sessions(store_url, means=means) as other,
    ):
        one.create("s")

        for number in range(100):
            host = other if number % 2 else one
            host.append_batch("s", [hello(f"u-{number}")], expected_seq=number)

        assert names(one, "s") == names(other, "s") == [f"u-{number}" for number in range(100)]
