"""`everfold images`: every image that a session shows, or has omitted."""

import click

from everfold.cli import output
from everfold.cli.options import Run, json_option, pass_run, reading_sessions, store_option
from everfold.cli.reading import check_session
from everfold.cli.talk.choosing import COLUMNS, SPARE, listed, record, row, totals


@click.command("images")
@click.argument("session")
@store_option
@json_option
@pass_run
def command(run: Run, session: str, store: str | None, as_json: bool) -> None:
    """List the images of SESSION: where each is, its state, and which event decided that.

    `retained` ones are shown to models, `omitted` ones are not; `output` ones were made by a model
    and are never omitted. `everfold omit` and `everfold bring-back` take them as SEQ:INDEX.
    """
    with reading_sessions(run.url(store)) as sessions:
        check_session(sessions.store, session)
        found = listed(sessions, session)
    if as_json:
        images = [record(each, by) for each, by in found]
        output.document({"session": session, "images": images})
        return
    if found:
        rows = (row(each, by) for each, by in found)
        output.table(COLUMNS, rows, spare=SPARE, is_cut=True)
    output.say(f"{totals(found)}")
