"""`everfold export`: a session as a file of the reference system's format."""

import sys
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from everfold.cli import output
from everfold.cli.describe import plural
from everfold.cli.options import Run, json_option, pass_run, reading_store, store_option
from everfold.cli.reading import check_session
from everfold.cli.visible import one_line, visible_json
from everfold.interchange.exporting import export_session
from everfold.session.fork import check_boundary
from everfold.session.ids import seq_of

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Terminal(BytesIO):
    """Writes JSON lines to a terminal with nothing in them that could steer it."""

    def writelines(self, lines: "Iterable[ReadableBuffer]") -> None:
        """Print each line as soon as it is there."""
        for line in lines:
            sys.stdout.write(visible_json(bytes(line).decode()))


@click.command("export")
@click.argument("session")
@store_option
@json_option
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to make, or folder to make one in; standard output if left out.",
)
@click.option("--at", type=int, metavar="SEQ", help="Last event to write; all if left out.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@pass_run
def command(
    run: Run,
    session: str,
    store: str | None,
    as_json: bool,
    out: Path | None,
    at: int | None,
    force: bool,
) -> None:
    """Write SESSION as JSONL (format version 3): the header, then one event a line.

    A file appears only when it is complete; only you may read it. With --at, what is whole of a
    damaged session can be saved. With --json, and -o: what was written, as JSON.
    """
    with reading_store(run.url(store)) as opened:
        check_session(opened, session)
        last = None if at is None else check_boundary(at, seq_of(opened.version(session)))
        where = out or _standard_output()
        result = export_session(opened, session, where, upto_seq=last, overwrite=force)
    if result.path is None:
        return
    if as_json:
        facts = {"session": session, "path": str(result.path), "events": result.event_count}
        output.document(facts)
    else:
        count = plural(result.event_count, "event")
        output.say(f"{one_line(session)}: {count} to {one_line(str(result.path))}")


def _standard_output() -> BinaryIO:
    if sys.stdout.isatty():
        return _Terminal()
    sys.stdout.flush()
    return sys.stdout.buffer
