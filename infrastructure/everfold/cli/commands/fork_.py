"""`everfold fork`: a copy of a session, or of its first events, under an id of its own."""

import click

from everfold.cli import output
from everfold.cli.describe import plural
from everfold.cli.options import Run, json_option, pass_run, store_option, writing_sessions
from everfold.cli.reading import check_session
from everfold.cli.visible import one_line
from everfold.session.ids import seq_of


@click.command("fork")
@click.argument("session")
@store_option
@json_option
@click.option(
    "--at", type=int, metavar="SEQ", help="Last event to copy; the whole log if left out."
)
@click.option("--id", "child_id", metavar="NEW", help="Id of the copy; a free one if left out.")
@pass_run
def command(
    run: Run, session: str, store: str | None, as_json: bool, at: int | None, child_id: str | None
) -> None:
    """Copy SESSION, or its events up to SEQ, into a new session and print its id.

    The events are copied inside the database. A cut inside a turn is refused.
    """
    with writing_sessions(run.url(store)) as sessions:
        check_session(sessions.store, session)
        child = sessions.fork(session, boundary=at, child_id=child_id)
        count = seq_of(sessions.store.version(child)) + 1
    # The last event is the marker that ends what was inherited.
    inherited = count - 1
    if as_json:
        record = {"session": child, "parentSession": session}
        output.document({**record, "inheritedEvents": inherited, "events": count})
    else:
        output.say(f"{one_line(child)}: {plural(inherited, 'event')} of {one_line(session)}")
