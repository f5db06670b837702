"""`everfold compact`: a summary takes the place of a session's older messages."""

import asyncio

import click

from everfold.cli import output
from everfold.cli.options import Run, check_there, json_option, pass_run, store_option
from everfold.cli.reading import check_session
from everfold.cli.talk.compacting import compact, outcome_record, outcome_text
from everfold.cli.talk.host import model_options, talking
from everfold.cli.talk.signals import told_to_end
from everfold.profiles.loading import DEFAULT
from everfold.profiles.opening import OpenProfile


@click.command("compact")
@click.argument("session")
@click.option("--focus", default="", metavar="TEXT", help="What the summary is to dwell on.")
@model_options
@store_option
@json_option
@pass_run
def command(
    run: Run,
    session: str,
    focus: str,
    profile: str | None,
    route: str | None,
    model: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Have the older messages of SESSION summarised by the profile's model.

    The messages stay in the log; models see the summary in their place. A session that is too small
    is left as it is.
    """
    check_there(run.url(store))
    with (
        talking(run, store, profile, create=False) as host,
        asyncio.Runner() as runner,
        told_to_end(),
    ):
        check_session(host.sessions.store, session)
        _check_meant(host, session, profile)
        try:
            outcome = compact(host, runner, session, focus=focus, route=route, model=model)
        finally:
            runner.run(host.disconnect())
    if as_json:
        output.document(outcome_record(session, outcome))
    else:
        output.say(outcome_text(outcome))


def _check_meant(host: OpenProfile, session_id: str, named: str | None) -> None:
    """Refuse to have the scripted model, which nobody named, summarise what a real one said.

    Raises:
        click.UsageError: the profile was left out.
    """
    header = host.sessions.load(session_id).latest("request/header")
    provider = None if header is None else header.data["header"]["config"]["provider"]
    is_default = named is None and host.profile.name == DEFAULT
    if is_default and provider is not None and provider not in host.profile.routes:
        raise click.UsageError(
            f"session {session_id!r} was run by {provider!r}; name its profile with --profile"
        )
