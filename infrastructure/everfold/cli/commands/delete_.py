"""`everfold delete`: removes a session for ever."""

import sys

import click

from everfold.cli import output
from everfold.cli.describe import plural
from everfold.cli.options import Run, json_option, pass_run, store_option, writing_sessions
from everfold.cli.reading import check_session
from everfold.cli.visible import one_line
from everfold.session.ids import seq_of


@click.command("delete")
@click.argument("session")
@store_option
@json_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_run
def command(run: Run, session: str, store: str | None, as_json: bool, yes: bool) -> None:
    """Remove SESSION, its events and snapshots, for ever; its id is not given out again.

    Forks of it keep their own copies. Images stay in their folder: other sessions may show them.
    """
    with writing_sessions(run.url(store)) as sessions:
        check_session(sessions.store, session)
        count = seq_of(sessions.store.version(session)) + 1
        if not yes:
            _ask(session, count)
        sessions.delete(session)
    if as_json:
        output.document({"session": session, "deletedEvents": count})
    else:
        output.say(f"{one_line(session)}: deleted, {plural(count, 'event')}")


def _ask(session_id: str, count: int) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here; say --yes to delete without asking")
    what = f"Delete {one_line(session_id)} with {plural(count, 'event')} for ever?"
    if not click.confirm(what, err=True):
        raise click.ClickException("nothing was deleted")
