"""`everfold replay`: a recording is played again and compared."""

import asyncio

import click

from everfold.cli import output
from everfold.cli.describe import plural
from everfold.cli.edge import DONE, REFUSED
from everfold.cli.options import Run, json_option, pass_run
from everfold.cli.visible import one_line
from everfold.profiles.replaying import replay_recording
from everfold.recordings.files import read_recording, shipped_names


@click.command("replay")
@click.argument("recording", required=False)
@click.option("--list", "lists", is_flag=True, help="List the recordings that everfold ships.")
@click.option("--timed", is_flag=True, help="In the recorded rhythm, not at once.")
@click.option("--store", metavar="URL", help="Keep the played session here; else in memory.")
@json_option
@pass_run
def command(
    run: Run, recording: str | None, lists: bool, timed: bool, store: str | None, as_json: bool
) -> int:
    """Play RECORDING offline: the name of a shipped one, or a file of `--record`.

    Every event and every request must be the recorded one, and every request must be what the log
    gives when it is rebuilt. Exit code 1 if anything differs.
    """
    if lists:
        _list(as_json=as_json)
        return DONE
    if recording is None:
        raise click.UsageError("name a recording, or --list them")
    read = read_recording(recording)
    kept = run.url(store) if store else None
    outcome = asyncio.run(replay_recording(read, store=kept, keeps_time=timed))
    if as_json:
        output.document(
            {
                "recording": recording,
                "equal": outcome.is_equal,
                "session": outcome.session_id,
                "events": outcome.events,
                "requests": outcome.requests,
                "differences": list(outcome.differences),
            }
        )
    else:
        counts = f"{plural(outcome.events, 'event')}, {plural(outcome.requests, 'request')}"
        said = "as recorded" if outcome.is_equal else "NOT AS RECORDED"
        output.say(f"{one_line(recording)}: {counts}: {said}")
        for difference in outcome.differences:
            output.say(f"  {one_line(difference)}")
    return DONE if outcome.is_equal else REFUSED


def _list(*, as_json: bool) -> None:
    found = [(name, read_recording(name).about) for name in shipped_names()]
    if as_json:
        output.document({"recordings": [{"name": name, "about": about} for name, about in found]})
    else:
        output.table(("RECORDING", "ABOUT"), found)
