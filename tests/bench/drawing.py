"""The table and the plot of the simulation."""

from itertools import pairwise
from pathlib import Path

from rich.table import Table

from tests.bench.simulation import Line


def simulation_table(lines: list[Line]) -> Table:
    """Return the requests at which something happened, and a sum."""
    drawn = Table(title="images shown and bytes kept, request by request (where something changed)")
    for name in ("request", "route", "logged decision", "shown", "kept", "shown", "kept"):
        drawn.add_column(name, justify="left" if name in ("route", "logged decision") else "right")
    for number, line in enumerate(lines, start=1):
        ours, other = line.ours, line.recomputed
        if line.decision or other.kept < 1.0 or number in (1, len(lines)):
            figures = (_count(ours.shown), _percent(ours.kept))
            base = (_count(other.shown), _percent(other.kept))
            drawn.add_row(str(number), line.phase, line.decision, *figures, *base)
    breaks = sum(line.ours.kept < 1.0 for line in lines)
    base_breaks = sum(line.recomputed.kept < 1.0 for line in lines)
    returned = sum(_returns(a.ours.shown, b.ours.shown) for a, b in _pairs(lines))
    base_returned = sum(_returns(a.recomputed.shown, b.recomputed.shown) for a, b in _pairs(lines))
    drawn.caption = (
        f"columns 4 and 5: durable omission; 6 and 7: recomputed for each request. Prefix broken "
        f"{breaks} times (each at a logged decision) against {base_breaks}; images that came back "
        f"by themselves: {returned} against {base_returned}."
    )
    return drawn


def plot_simulation(lines: list[Line], path: Path) -> None:
    """Draw images shown and kept prefix over the requests, both ways of working."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (upper, lower) = pyplot.subplots(2, 1, sharex=True, figsize=(10, 6))
    numbers = range(1, len(lines) + 1)
    upper.plot(numbers, [len(line.recomputed.shown) for line in lines], "--", label="recomputed")
    upper.plot(numbers, [len(line.ours.shown) for line in lines], label="durable")
    upper.set_ylabel("images shown")
    upper.legend()
    lower.plot(numbers, [100 * line.recomputed.kept for line in lines], "--", label="recomputed")
    lower.plot(numbers, [100 * line.ours.kept for line in lines], label="durable")
    lower.set_ylabel("prefix kept, %")
    lower.set_xlabel("request")
    for number, (before, line) in enumerate(_pairs(lines), start=2):
        if before.phase != line.phase:
            for axis in (upper, lower):
                axis.axvline(number, color="grey", linewidth=0.5)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _pairs(lines: list[Line]) -> list[tuple[Line, Line]]:
    return list(pairwise(lines))


def _returns(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """Return how many images were not shown before although they were there, and are now."""
    newest = max(before, default=-1)
    return sum(image <= newest for image in set(after) - set(before))


def _count(shown: tuple[int, ...]) -> str:
    return str(len(shown))


def _percent(kept: float) -> str:
    return f"{100 * kept:.0f} %"
