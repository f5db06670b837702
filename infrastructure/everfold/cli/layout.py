"""Fitting a table to a terminal: which columns stay, and how wide each may be."""

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 2
"""Blanks between two columns."""

_SHORTEST = 8
"""No column is made narrower than this, so that what is left of it can be read."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that fit.

    Attributes:
        chosen: the indexes of those that stay, in their order.
        widths: one for each that stays.
    """

    chosen: tuple[int, ...]
    widths: tuple[int, ...]


def layout(
    columns: Sequence[str], natural: Sequence[int], width: int, spare: Sequence[str] = ()
) -> Layout:
    """Return the columns that fit: the spare ones go first, in their order, then others are narrowed.

    Args:
        natural: the width that each column needs to show everything.
        width: that of the terminal.
        spare: names of columns that can be left out; while they stay they are never narrowed.
    """
    least = [
        need if columns[index] in spare or index == 0 else min(need, _SHORTEST)
        for index, need in enumerate(natural)
    ]
    # The first column is what people copy into the next command; it is folded before it fills a line.
    least[0] = min(natural[0], max(_SHORTEST, width // 2))
    chosen = list(range(len(columns)))
    for name in spare:
        if _total([least[index] for index in chosen]) <= width:
            break
        chosen.remove(columns.index(name))
    widths = _narrowed(
        [natural[index] for index in chosen], [least[index] for index in chosen], width
    )
    return Layout(tuple(chosen), tuple(widths))


def _narrowed(widths: list[int], least: Sequence[int], width: int) -> list[int]:
    """Take what is too much from the widest columns, a blank at a time, the last of equals first."""
    narrowed = list(widths)
    while _total(narrowed) > width:
        able = [index for index in range(len(narrowed)) if narrowed[index] > least[index]]
        if not able:
            break
        narrowed[max(able, key=lambda index: (narrowed[index], index))] -= 1
    return narrowed


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
