"""`everfold run`: one prompt, one answer."""

import sys
from collections.abc import Sequence

import click

from everfold.agent.content import Part
from everfold.agent.results import TurnResult
from everfold.cli import output
from everfold.cli.edge import DONE, INTERRUPTED, PARTLY, REFUSED
from everfold.cli.options import Run, json_option, pass_run
from everfold.cli.talk.asking import Talk, parts_of, result_record
from everfold.cli.talk.beginning import agent_of
from everfold.cli.talk.going_on import going_on
from everfold.cli.talk.host import note
from everfold.cli.talk.recording import MaybeRecorder
from everfold.cli.talk.telling import Teller, failure_text
from everfold.cli.talk.wanting import Wanted, opened, talk_options
from everfold.recordings.recording import Act

_STATUS = {"completed": DONE, "max-tokens": PARTLY, "aborted": INTERRUPTED}


@click.command("run")
@click.argument("prompt", required=False)
@click.option("--session", metavar="SESSION", help="Go on with this session; else a new one.")
@talk_options("prompt")
@json_option
@pass_run
def command(
    run: Run, prompt: str | None, session: str | None, wanted: Wanted, as_json: bool
) -> int:
    """Ask a model PROMPT and print its answer as it comes.

    Without PROMPT, or with `-`, it is read from standard input. Exit code 1 if there is no answer,
    3 if it was cut off by a limit of tokens, 130 if it was cancelled.
    """
    text = _prompt(prompt)
    with opened(run, wanted) as work:
        sessions = work.host.sessions
        content = parts_of(text, work.attached)
        agent = agent_of(work, going_on(work, session), content)
        session_id = agent.session_id
        talk = Talk(work.host, agent, work.runner, Teller(agent.cancel, is_quiet=as_json))
        first = sessions.load(session_id).next_seq
        work.recorder.begin(agent)
        result = _asked(talk, work.recorder, content, first)
        if as_json:
            output.document(result_record(result, list(sessions.log(session_id, first=first))))
        else:
            asked = agent.settings.model
            _tell(result, f"{asked.model} of {asked.provider}")
    return _STATUS.get(result.kind, REFUSED)


def _asked(talk: Talk, recorder: MaybeRecorder, content: Sequence[Part], first: int) -> TurnResult:
    """Ask, and return what became of it.

    Args:
        first: the seq of the first event that is stored now.

    Raises:
        KeyboardInterrupt: it was cancelled before a turn was begun.
    """
    recorder.asked(content)
    try:
        return talk.ask(content)
    except KeyboardInterrupt:
        recorder.note(Act("cancel"))
        return _cancelled(talk, first)


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
