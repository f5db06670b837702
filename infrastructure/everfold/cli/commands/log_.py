"""`everfold log`: the events of a session as they are stored."""

import shutil
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import click

from everfold.cli import output
from everfold.cli.describe import event_text, moment
from everfold.cli.options import Run, json_option, pass_run, reading_store, store_option
from everfold.cli.reading import check_session, decoded
from everfold.cli.visible import one_line, visible
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.ids import seq_of, version_of
from everfold.session.ports import SessionStore

_PIPED_WIDTH = 200
_SEQ = click.IntRange(min=0)


@click.command("log")
@click.argument("session")
@store_option
@json_option
@click.option("--first", type=_SEQ, default=0, metavar="SEQ", help="First event to print.")
@click.option("--last", type=_SEQ, metavar="SEQ", help="Last event to print.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; repeatable.")
@pass_run
def command(
    run: Run,
    session: str,
    store: str | None,
    as_json: bool,
    first: int,
    last: int | None,
    types: tuple[str, ...],
) -> None:
    """Print the events of SESSION in order, one line each.

    With --json: one event record a line, as it is stored.
    """
    if last is not None and last < first:
        raise click.UsageError(f"--last {last} is before --first {first}")
    with reading_store(run.url(store)) as opened:
        check_session(opened, session)
        rows = _rows(opened, session, first, last, frozenset(types))
        count = 0
        for line in decoded(session, rows, _json_line if as_json else _text_line):
            count += 1
            if as_json:
                output.document(line)
            else:
                output.say(line)
        if count == 0:
            said = _nothing(opened, session, first, last, types)
            click.echo(visible(f"everfold: {said}"), err=True)


def _nothing(
    store: SessionStore, session_id: str, first: int, last: int | None, types: Sequence[str]
) -> str:
    """Return why nothing was printed."""
    end = seq_of(store.version(session_id))
    if end < 0:
        return f"session {session_id!r} has no event yet"
    if first > end:
        return f"--first {first}: the session has events 0 to {end}"
    there = sorted({row.type for row in _rows(store, session_id, first, last, frozenset())})
    near = [close for type_ in types for close in get_close_matches(type_, there, n=1)]
    hint = f"; did you mean {', '.join(near)}?" if near else f"; there are {', '.join(there)}"
    return f"no event of type {' or '.join(types)} is there{hint}"


def _rows(
    store: SessionStore, session_id: str, first: int, last: int | None, types: frozenset[str]
) -> Iterator[Recorded]:
    upto = None if last is None else version_of(last)
    for row in store.read(session_id, after=version_of(first) - 1, upto=upto):
        if not types or row.type in types:
            yield row


def _json_line(row: Recorded) -> Json:
    envelope = row.envelope()
    beside = {
        name: envelope[name] for name in ("eventId", "actor", "correlationId") if name in envelope
    }
    return {**row.record(), **beside}


def _text_line(row: Recorded) -> str:
    width = shutil.get_terminal_size().columns if output.is_rich() else _PIPED_WIDTH
    head = f"{row.seq:>6}  {moment(row.time)}  {one_line(row.type):<18}"
    return f"{head}  {one_line(event_text(row), max(20, width - len(head) - 2))}".rstrip()
