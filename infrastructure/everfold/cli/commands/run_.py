"""`everfold run`: one prompt, one answer."""

import asyncio
import sys
from pathlib import Path

import click

from everfold.agent.results import TurnResult
from everfold.cli import output
from everfold.cli.edge import DONE, INTERRUPTED, PARTLY, REFUSED
from everfold.cli.options import Run, json_option, pass_run, store_option
from everfold.cli.talk.asking import Talk, parts_of, result_record
from everfold.cli.talk.attaching import attached, attachment_options
from everfold.cli.talk.host import (
    model_options,
    note,
    session_of,
    session_options,
    talking,
)
from everfold.cli.talk.recording import record_option, recorder_for
from everfold.cli.talk.signals import told_to_end
from everfold.cli.talk.telling import Teller, failure_text
from everfold.recordings.recording import Act

_STATUS = {"completed": DONE, "max-tokens": PARTLY, "aborted": INTERRUPTED}


@click.command("run")
@click.argument("prompt", required=False)
@attachment_options("prompt")
@click.option("--session", metavar="SESSION", help="Go on with this session; else a new one.")
@session_options
@model_options
@record_option
@store_option
@json_option
@pass_run
def command(
    run: Run,
    prompt: str | None,
    images: tuple[Path, ...],
    files: tuple[Path, ...],
    session: str | None,
    new_id: str | None,
    resume: bool,
    profile: str | None,
    route: str | None,
    model: str | None,
    record: Path | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Ask a model PROMPT and print its answer as it comes.

    Without PROMPT, or with `-`, it is read from standard input. Exit code 1 if there is no answer,
    3 if it was cut off by a limit of tokens, 130 if it was cancelled.
    """
    text = _prompt(prompt)
    recorder = recorder_for(record)
    with (
        talking(run, store, profile, wrap=recorder.wrap) as host,
        asyncio.Runner() as runner,
        recorder.writing(host),
        told_to_end(),
    ):
        host.route(route)
        shown = attached(host, images, files)
        session_id = session_of(host, session, new_id)
        agent = host.agent(session_id, route=route, model=model, takes_over=resume)
        talk = Talk(host, agent, runner, Teller(agent.cancel, is_quiet=as_json))
        first = host.sessions.load(session_id).next_seq
        recorder.begin(agent)
        recorder.asked(parts_of(text, shown))
        try:
            result = talk.ask(parts_of(text, shown))
        except KeyboardInterrupt:
            recorder.note(Act("cancel"))
            result = _cancelled(talk, first)
        finally:
            runner.run(host.disconnect())
        if as_json:
            events = list(host.sessions.log(session_id, first=first))
            output.document(result_record(result, events))
        else:
            asked = agent.settings.model
            _tell(result, f"{asked.model} of {asked.provider}")
    return _STATUS.get(result.kind, REFUSED)


def _prompt(given: str | None) -> str:
    """Return the prompt: as given, or what standard input holds.

    Raises:
        click.UsageError: there is none, or nothing in it.
    """
    text = given
    if text is None or text == "-":
        if sys.stdin is None or (given is None and sys.stdin.isatty()):
            raise click.UsageError("give a prompt, or pipe one in")
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").rstrip("\n")
    if not text.strip():
        raise click.UsageError("the prompt is empty")
    return text


def _cancelled(talk: Talk, first: int) -> TurnResult:
    """Return what became of the turn that was cancelled.

    Raises:
        KeyboardInterrupt: none was begun.
    """
    result = talk.last_turn()
    if result is None or result.start_seq < first:
        raise KeyboardInterrupt
    return result


def _tell(result: TurnResult, asked: str) -> None:
    """Say where the answer is kept, and why there is none if there is none."""
    if not result.is_completed:
        note(failure_text(result))
    note(f"session {result.session_id}, turn {result.turn}: {asked}")
