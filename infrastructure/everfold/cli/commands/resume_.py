"""`everfold resume`: takes a session over after a crash."""

import click

from everfold.cli import output
from everfold.cli.describe import plural
from everfold.cli.options import Run, json_option, pass_run, store_option, writing_sessions
from everfold.cli.reading import load
from everfold.cli.visible import one_line


@click.command("resume")
@click.argument("session")
@store_option
@json_option
@pass_run
def command(run: Run, session: str, store: str | None, as_json: bool) -> None:
    """Close what a crash left open in SESSION: unanswered tool calls, the step, the turn.

    Nothing is repeated: a call whose outcome is unknown is answered so. Do not resume a session
    while another process is in the middle of its turn.
    """
    with writing_sessions(run.url(store)) as sessions:
        before = load(sessions, session).next_seq
        after = sessions.resume(session).next_seq
        added = list(sessions.log(session, first=before, last=after - 1)) if after > before else []
    if as_json:
        types = [{"seq": each.seq, "type": each.type} for each in added]
        output.document({"session": session, "events": after, "appended": types})
        return
    output.say(f"{one_line(session)}: {plural(len(added), 'event')} appended")
    for each in added:
        output.say(f"{each.seq:>6}  {one_line(each.type)}")
