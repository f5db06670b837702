"""The command line `everfold`; a command's module is loaded when the command is run."""

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper

import click

from everfold.cli.edge import EXIT_CODES, USAGE, ReaderGoneError, is_reader_gone, run_guarded
from everfold.cli.location import VARIABLE, default_store, shown_url
from everfold.cli.options import Run

COMMANDS = {
    "demo": "Host a session with images, kill it, restore, fork and audit it.",
    "chat": "Talk to a model, a line at a time.",
    "run": "Ask a model one thing and print its answer.",
    "list": "List the sessions of a store.",
    "show": "Show a session: what the model sees, or what people saw.",
    "log": "Print the events of a session.",
    "images": "List the images of a session, and what decided about each.",
    "omit": "Show chosen images to no model any more.",
    "bring-back": "Show omitted images to models again.",
    "compact": "Replace the older messages of a session by a summary.",
    "fork": "Copy a session, or its part up to an event, into a new one.",
    "resume": "Take a session over after a crash: close what was left open.",
    "audit": "Check a session's stored events and every view of them.",
    "import": "Store sessions from files.",
    "export": "Write a session as a file.",
    "replay": "Play a recording again, offline, and compare.",
    "plugins": "List the installed plugins.",
    "delete": "Remove a session for ever.",
}
"""Every command and its line of help; the module of a command has its name and an underscore."""


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click gives it
        """Return the names in the order of a first use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click gives it
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"everfold.cli.commands.{cmd_name.replace('-', '_')}_")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command by its name, and what follows it; a mistyped name is told its like."""
        near = get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click gives it
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click gives it
        """Say where the store is, and what the exit codes mean."""
        with formatter.section(f"The store, unless --store or ${VARIABLE} names one"):
            formatter.write_text(shown_url(default_store()))
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a reader that went away is told apart from a refusal."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if is_reader_gone(error):
                raise ReaderGoneError from error
            raise


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--store", metavar="URL", help="Store URL or SQLite file, for any command.")
@click.version_option(package_name="everfold", prog_name="everfold")
@click.pass_context
def everfold(context: click.Context, store: str | None) -> None:
    """Sessions of LLM agents as event streams: durable, forkable, auditable."""
    context.ensure_object(Run).group_store = store
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(USAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (see `cli.edge`).

    Args:
        arguments: those after the program's name; the process's own if None.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_streams()
    run = Run()

    def command() -> object:
        return everfold.main(given, prog_name="everfold", standalone_mode=False, obj=run)

    return run_guarded(command, run, given)


def _prepare_streams() -> None:
    """Make the output streams usable: some may be closed, some may know ASCII alone."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
