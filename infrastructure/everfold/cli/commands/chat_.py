"""`everfold chat`: a conversation, a line at a time."""

import asyncio
from pathlib import Path

import click

from everfold.cli.edge import DONE, REFUSED
from everfold.cli.options import Run, pass_run, store_option
from everfold.cli.talk.attaching import attached, attachment_options
from everfold.cli.talk.beginning import Beginning
from everfold.cli.talk.conversing import Conversation
from everfold.cli.talk.host import is_interactive, model_options, session_options, talking
from everfold.cli.talk.lines import lines
from everfold.cli.talk.recording import record_option, recorder_for
from everfold.cli.talk.signals import told_to_end


@click.command("chat")
@click.argument("session", required=False)
@attachment_options("first message")
@session_options
@model_options
@record_option
@store_option
@pass_run
def command(
    run: Run,
    session: str | None,
    images: tuple[Path, ...],
    files: tuple[Path, ...],
    new_id: str | None,
    resume: bool,
    profile: str | None,
    route: str | None,
    model: str | None,
    record: Path | None,
    store: str | None,
) -> int:
    """Talk to a model: go on with SESSION, or begin a new one with the first message.

    Each line is a message; a backslash at its end joins the next one. `/help` lists commands. Ctrl-C
    cancels the turn, Ctrl-D leaves. With a pipe for input: exit code 1 if a message got no answer.
    """
    recorder = recorder_for(record)
    is_typed = is_interactive()
    with (
        talking(run, store, profile, wrap=recorder.wrap) as host,
        asyncio.Runner() as runner,
        recorder.writing(host),
        told_to_end() as ending,
    ):
        host.route(route)
        shown = attached(host, images, files)
        beginning = Beginning(
            host,
            runner,
            recorder,
            session,
            new_id,
            lambda name: host.agent(name, route=route, model=model, takes_over=resume),
        )
        conversation = Conversation(run, beginning, is_typed, ending, waiting=shown)
        conversation.talk = beginning.waiting()
        try:
            conversation.run(lines(ending, is_interactive=is_typed))
        finally:
            runner.run(host.disconnect())
    return REFUSED if conversation.failures and not is_typed else DONE
