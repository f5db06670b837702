"""`everfold images`: every image that a session shows, or has omitted."""

import click

from everfold.cli import output
from everfold.cli.holding import holding
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
    and are never omitted; of a `missing` one the bytes are not there. `everfold omit` and
    `everfold bring-back` take them as SEQ:INDEX.
    """
    url = run.url(store)
    with reading_sessions(url) as sessions, holding(url) as held:
        check_session(sessions.store, session)
        found = listed(sessions, session, held)
    if as_json:
        output.document({"session": session, "images": list(map(record, found))})
        return
    if found:
        output.table(COLUMNS, map(row, found), spare=SPARE, is_cut=True)
    output.say(totals(found))
    missing = sum(image.is_missing for image in found)
    if missing:
        output.say(f"missing: {held.told(missing)}")
