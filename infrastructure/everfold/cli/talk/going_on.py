"""Going on with the newest session of a store: `--continue`."""

from collections.abc import Iterable

import click

from everfold.cli.talk.wanting import Opened
from everfold.session.errors import SessionError
from everfold.session.ports import StreamSummary

_DAMAGE = (SessionError, ValueError, TypeError, KeyError)


def going_on(work: Opened, named: str | None) -> str | None:
    """Return the session to go on with: the one that is named, the newest one, or None for a new one.

    Raises:
        click.UsageError: the newest one is wanted, and another one too.
        click.ClickException: there is no session to go on with.
    """
    if not work.wanted.goes_on:
        return named
    if named is not None or work.wanted.new_id is not None:
        raise click.UsageError("--continue chooses the session; name none, and no --id, with it")
    newest = newest_of(work.host.sessions.summaries())
    if newest is None:
        raise click.ClickException(
            "there is no session to go on with in this store; leave --continue out to begin one"
        )
    return newest


def newest_of(summaries: Iterable[StreamSummary]) -> str | None:
    """Return the id of the session whose last event is the latest; of equals the last one by id.

    One whose last event cannot be read is passed over.
    """
    found: tuple[int, str] | None = None
    for summary in summaries:
        try:
            time_ms = summary.last.time
        except _DAMAGE:
            continue
        if found is None or time_ms >= found[0]:
            found = (time_ms, summary.stream_id)
    return None if found is None else found[1]
