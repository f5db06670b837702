"""Paired measurements: two ways of doing the same work, in turn, compared by the median ratio."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        ours, base: medians in `unit`.
        ratio: ours to base, the median over pairs; for throughput above 1 is better.
        limit: what the ratio must reach, as text.
    """

    work: str
    database: str
    ours: float
    base: float
    unit: str
    ratio: float
    limit: str

    @property
    def is_within(self) -> bool:
        """Whether the ratio keeps the limit (`<= x` or `>= x`)."""
        sign, number = self.limit.split()
        return self.ratio <= float(number) if sign == "<=" else self.ratio >= float(number)


def timed(work: Work) -> float:
    """Return how long a piece of work takes, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def paired(
    ours: Work, base: Work, rounds: int, prepare: Work = lambda: None
) -> tuple[float, float, float]:
    """Run two works in turn; return the medians in seconds and the median of the paired ratios.

    Args:
        prepare: is run before each pair, and not timed.
    """
    times = []
    for turn in range(-1, rounds):
        prepare()
        times.append(_pair(ours, base, is_first=bool(turn % 2)))
    del times[0]
    ratio = statistics.median(mine / other for mine, other in times)
    return (
        statistics.median(mine for mine, _ in times),
        statistics.median(other for _, other in times),
        ratio,
    )


def _pair(ours: Work, base: Work, *, is_first: bool) -> tuple[float, float]:
    if is_first:
        mine = timed(ours)
        return mine, timed(base)
    other = timed(base)
    return timed(ours), other


def row(
    work: str,
    database: str,
    ours: Work,
    base: Work,
    *,
    rounds: int,
    limit: str,
    prepare: Work = lambda: None,
) -> Row:
    """Return the table line of a pair, in milliseconds."""
    mine, other, ratio = paired(ours, base, rounds, prepare)
    return Row(work, database, mine * 1000, other * 1000, "ms", ratio, limit)
