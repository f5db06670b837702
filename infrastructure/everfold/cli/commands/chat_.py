"""`everfold chat`: a conversation, a line at a time."""

import click

from everfold.cli.edge import DONE, REFUSED
from everfold.cli.options import Run, pass_run
from everfold.cli.talk.beginning import Beginning
from everfold.cli.talk.conversing import Conversation
from everfold.cli.talk.going_on import going_on
from everfold.cli.talk.host import is_interactive
from everfold.cli.talk.lines import lines
from everfold.cli.talk.wanting import Wanted, opened, talk_options


@click.command("chat")
@click.argument("session", required=False)
@talk_options("first message")
@pass_run
def command(run: Run, session: str | None, wanted: Wanted) -> int:
    """Talk to a model: go on with SESSION, or begin a new one with the first message.

    Each line is a message; a backslash at its end joins the next one. `/help` lists commands. Ctrl-C
    cancels the turn, Ctrl-D leaves. With a pipe for input: exit code 1 if a message got no answer.
    """
    is_typed = is_interactive()
    with opened(run, wanted) as work:
        beginning = Beginning(work, going_on(work, session))
        conversation = Conversation(run, beginning, is_typed, waiting=work.attached)
        conversation.talk = beginning.waiting()
        conversation.run(lines(work.ending, is_interactive=is_typed))
    return REFUSED if conversation.failures and not is_typed else DONE
