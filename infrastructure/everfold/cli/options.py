"""Options that commands share, and what they come to."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import click

from everfold.cli.location import VARIABLE, file_of, shown_url, store_url, without_secrets
from everfold.session.errors import StoreReadOnlyError, StoreUnavailableError

if TYPE_CHECKING:
    from everfold.host.sessions import Sessions
    from everfold.store.session_store import DatabaseSessionStore

F = TypeVar("F", bound=Callable[..., object])

_STORE_HELP = f"Store URL or SQLite file; else ${VARIABLE}, else a file in your data directory."


@dataclass(slots=True)
class Run:
    """One run of the program: what was asked of all commands alike.

    Attributes:
        group_store: the store named before the command.
        store_in_use: the URL that was opened, for keeping its password out of messages.
        secrets: further texts that no message may show.
    """

    group_store: str | None = None
    store_in_use: str | None = None
    secrets: list[str] = field(default_factory=list, repr=False)

    def clean(self, text: str) -> str:
        """Return a text without the store's password and without keys."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return without_secrets(text, self.store_in_use)

    def url(self, named: str | None, of_profile: Callable[[], str | None] | None = None) -> str:
        """Return the URL of the store to use, and remember it.

        Args:
            of_profile: gives the store that a profile names, for where nothing else names one;
                that of the working directory's `everfold.toml` if None.
        """
        fallback = _of_profile if of_profile is None else of_profile
        self.store_in_use = store_url(named, self.group_store, fallback=fallback)
        return self.store_in_use


pass_run = click.make_pass_decorator(Run, ensure=True)


def store_option(command: F) -> F:
    """Give a command the option that names its store."""
    return click.option("--store", metavar="URL", help=_STORE_HELP)(command)


def json_option(command: F) -> F:
    """Give a command the option that makes its output JSON."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def _of_profile() -> str | None:
    from everfold.cli.location import PROFILE

    if not os.path.isfile(PROFILE):
        return None
    from everfold.profiles.loading import stored_in

    return stored_in()


@contextmanager
def reading_store(url: str) -> "Iterator[DatabaseSessionStore]":
    """Open a store for reading; nothing is created, no plugin is needed.

    Raises:
        StoreError: it is not there, or cannot be read.
    """
    from everfold.store.urls import open_store

    check_there(url)
    with open_store(url, create=False, read_only=True) as store:
        yield store


@contextmanager
def reading_sessions(url: str) -> "Iterator[Sessions]":
    """Host the sessions of a store for reading, with every installed plugin.

    Raises:
        StoreError, PluginError: the store or a plugin cannot be used.
    """
    from everfold.host.opening import open_sessions

    check_there(url)
    with open_sessions(url, read_only=True) as sessions:
        yield sessions


@contextmanager
def writing_sessions(url: str, *, create: bool = False) -> "Iterator[Sessions]":
    """Host the sessions of a store for writing.

    Args:
        create: make the store if there is none.
    """
    from everfold.host.opening import open_sessions

    if not create:
        check_there(url)
    check_changeable(url)
    with open_sessions(url, create=create) as sessions:
        yield sessions


def check_lasting(url: str) -> None:
    """Refuse a store in memory: it is empty at the start of a command, and gone at its end.

    Raises:
        StoreUnavailableError: the store is one in memory.
    """
    if url.partition("://")[0] == "sqlite" and file_of(url) is None:
        raise StoreUnavailableError(
            f"{url!r} names no file: a store in memory is gone when the command ends; "
            "name a file, as in sqlite:///agents.db"
        )


def check_there(url: str) -> None:
    """Refuse an SQLite store whose file is not there, with a hint how to make one.

    Raises:
        StoreUnavailableError: there is no such file, or the store is one in memory.
    """
    check_lasting(url)
    path = file_of(url)
    if path is not None and not path.exists():
        raise StoreUnavailableError(
            f"there is no store at {shown_url(url)}; name one with --store or ${VARIABLE}, "
            "or make one: `everfold chat`, `everfold demo`, `everfold import FILE`"
        )


def check_changeable(url: str) -> None:
    """Refuse an SQLite store that is there and may not be written.

    SQLite would only say that it cannot open the file, or what it keeps beside it.

    Raises:
        StoreReadOnlyError: names what may not be written, the file or its folder.
    """
    path = file_of(url)
    if path is None or not path.is_file():
        return
    for place, how in ((path, os.W_OK), (path.parent, os.W_OK | os.X_OK)):
        if not os.access(place, how):
            raise StoreReadOnlyError(
                f"the store {path} cannot be changed: {place} may not be written; "
                "the commands that only read it still work"
            )
