"""What a command prints: JSON, plain text, or tables on a terminal.

The rule to keep: every text passes `visible` on its way out, so that no log can steer a terminal.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson

from everfold.cli.layout import layout
from everfold.cli.visible import one_line, visible, visible_json
from everfold.session.frozen import Json

if TYPE_CHECKING:
    from rich.console import Console

_PAGE_ROWS = 200
_EDGES = 2
"""Blanks at the two ends of a table's lines."""


def is_rich() -> bool:
    """Tell whether standard output is a terminal that can show tables."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def console(*, stderr: bool = False) -> "Console":
    """Return a console that adds no markup, no links and no highlights of its own."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)


def json_text(value: Json) -> str:
    """Return JSON on one line, safe to print on a terminal."""
    try:
        return visible_json(orjson.dumps(value).decode())
    except TypeError:
        # The name of a file need not be Unicode; nothing else that is printed has lone surrogates.
        return json.dumps(value, separators=(",", ":"))


def say(text: str = "") -> None:
    """Print text for people."""
    sys.stdout.write(visible(text) + "\n")


def heading(text: str) -> None:
    """Print a line that stands out on a terminal (unless NO_COLOR asks for none of that)."""
    if is_rich() and not os.environ.get("NO_COLOR"):
        sys.stdout.write(f"\x1b[1m{visible(text)}\x1b[0m\n")
    else:
        say(text)


def document(value: Json) -> None:
    """Print one JSON document."""
    sys.stdout.write(json_text(value) + "\n")


def document_with_list(fields: Mapping[str, Json], name: str, items: Iterable[Json]) -> None:
    """Print one JSON document whose last member is a list that is made while it is printed."""
    sys.stdout.write(json_text(fields)[:-1] + ("," if fields else "") + json_text(name) + ":[")
    for index, item in enumerate(items):
        sys.stdout.write(("," if index else "") + json_text(item))
    sys.stdout.write("]}\n")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    spare: Sequence[str] = (),
    is_cut: bool = False,
) -> int:
    """Print rows page by page under their column names, and return how many there were.

    On a terminal each page is a table; elsewhere columns are padded with spaces.

    Args:
        spare: the columns that a terminal too narrow for all is not shown, in this order.
        is_cut: whether a text that is too long for its column ends with an ellipsis; else it goes
            on in the next line.
    """
    count = 0
    rich = is_rich()
    for page in _pages(rows):
        cells = [[one_line(cell) for cell in row] for row in page]
        if rich:
            _rich_table(columns, cells, spare, is_cut=is_cut)
        else:
            _plain_table(columns if count == 0 else (), cells)
        count += len(cells)
    return count


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[], None]]:
    """Show a progress bar on standard error; yield what moves it on by one.

    None is shown if standard error is no terminal, or if standard output is one: what is printed
    there shows the progress, and would run into the bar.
    """
    if sys.stdout.isatty() or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _nothing
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    bars = Progress(
        *columns,
        console=console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bars:
        task = bars.add_task(one_line(title), total=total)
        yield lambda: bars.advance(task)


def _nothing() -> None:
    """Move no bar on."""


def _pages(rows: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    page: list[Sequence[str]] = []
    for row in rows:
        page.append(row)
        if len(page) == _PAGE_ROWS:
            yield page
            page = []
    if page:
        yield page


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [columns, *rows] if columns else list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(padded.rstrip() + "\n")


def _rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str], *, is_cut: bool
) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    needed = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    fitting = layout(columns, needed, console().width - _EDGES, spare)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, width in zip(fitting.chosen, fitting.widths, strict=True):
        is_shortened = is_cut and index > 0
        shown.add_column(
            Text(columns[index]),
            width=width,
            overflow="ellipsis" if is_shortened else "fold",
            no_wrap=is_shortened,
        )
    for row in rows:
        shown.add_row(*(Text(row[index]) for index in fitting.chosen))
    console().print(shown)
