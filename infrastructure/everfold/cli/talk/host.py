"""Opening a profile for a command that talks to a model."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from everfold.attachments.admission import Notice
from everfold.cli.options import Run, check_changeable
from everfold.cli.reading import check_session
from everfold.cli.visible import one_line, visible
from everfold.profiles.loading import load_profile, located
from everfold.profiles.opening import OpenProfile, Wrap, open_profile
from everfold.session.errors import SessionExistsError
from everfold.session.ids import session_id

F = TypeVar("F", bound=Callable[..., object])


def profile_option(command: F) -> F:
    """Give a command the option that names its profile."""
    return click.option(
        "--profile",
        metavar="NAME|PATH",
        help="A shipped profile or a TOML file; else $EVERFOLD_PROFILE, ./everfold.toml, `scripted`.",
    )(command)


def model_options(command: F) -> F:
    """Give a command the options that say who is asked."""
    command = click.option("--model", metavar="NAME", help="Another model than the route's.")(
        command
    )
    command = click.option("--route", metavar="NAME", help="Another route of the profile.")(command)
    return profile_option(command)


def session_options(command: F) -> F:
    """Give a command the options for new, for newest and for broken-off sessions."""
    command = click.option(
        "--resume", is_flag=True, help="Close first what a crash left open in the session."
    )(command)
    command = click.option("--id", "new_id", metavar="NEW", help="Id of a new session.")(command)
    return click.option(
        "-c", "--continue", "goes_on", is_flag=True, help="Go on with the newest session."
    )(command)


def note(text: str) -> None:
    """Tell people something beside the output, on one line of standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"[{one_line(text)}]\n")
    sys.stderr.flush()


@contextmanager
def talking(
    run: Run,
    store: str | None,
    profile: str | None,
    *,
    wrap: Wrap = lambda route: route,
    create: bool = True,
) -> Iterator[OpenProfile]:
    """Run a host as a profile says, on the store that is in use.

    Raises:
        ProfileError, PluginError, StoreError: it cannot be run so.
    """
    with _warnings(run):
        chosen = load_profile(profile)
        url = run.url(store, lambda: located(chosen.store, chosen.folder))
        check_changeable(url)
        with open_profile(chosen, store=url, create=create, wrap=wrap) as host:
            run.secrets = host.secrets
            host.on_notice = _tell_notice
            yield host


def _tell_notice(name: str, notice: Notice) -> None:
    note(f"{name}: {notice.text}")


def check_choice(host: OpenProfile, named: str | None, new_id: str | None) -> None:
    """Refuse a session that is not there, and an id for a new one that is taken.

    Raises:
        IdError: no session can have this id.
        SessionNotFoundError: there is none of this name.
        SessionExistsError: the new id is taken.
    """
    if named is not None and new_id is not None:
        raise click.UsageError("a session is either named, or new with --id")
    if named is not None:
        check_session(host.sessions.store, named)
    elif new_id is not None and host.sessions.store.version(session_id(new_id)):
        raise SessionExistsError(new_id)


def session_of(host: OpenProfile, named: str | None, new_id: str | None) -> str:
    """Return the id of the session that was chosen; a new one is stored now.

    Raises:
        SessionError: as `check_choice`.
    """
    check_choice(host, named, new_id)
    return named or host.sessions.create(new_id, cwd=str(Path.cwd())).id


class _OneLine(logging.Handler):
    """Says what libraries and plugins warn of, a line each, without keys and controls."""

    def __init__(self, run: Run) -> None:
        super().__init__(logging.WARNING)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        note(self._run.clean(f"{record.levelname.lower()}: {text}"))


@contextmanager
def _warnings(run: Run) -> Iterator[None]:
    handler = _OneLine(run)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def is_interactive() -> bool:
    """Tell whether a person sits at both ends."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def write(text: str) -> None:
    """Print a piece of a model's text, made visible, at once."""
    sys.stdout.write(visible(text))
    sys.stdout.flush()
