"""`everfold list`: the sessions of a store, read page by page."""

from collections.abc import Iterator
from dataclasses import dataclass
from shutil import get_terminal_size

import click

from everfold.cli import output
from everfold.cli.describe import moment
from everfold.cli.options import Run, json_option, pass_run, reading_store, store_option
from everfold.session.errors import SessionError
from everfold.session.events import topics_of
from everfold.session.frozen import Json
from everfold.session.ids import seq_of
from everfold.session.ports import SessionStore, StreamSummary
from everfold.session.session import header_of

_TITLE_TOPICS = topics_of("session/title")
_SPARE = ("CREATED", "LAST TYPE", "EVENTS", "LAST EVENT")
_TO_THE_SECOND = 100
"""A terminal that is narrower is shown times without seconds."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One session of a list.

    Attributes:
        damage: what cannot be read of its header or its last event; None if both are whole.
    """

    session_id: str
    event_count: int
    header: dict[str, Json]
    last_type: str
    last_ms: int | None
    title: str | None
    damage: str | None


def _unicode(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not valid Unicode") from None
    return value


@click.command("list")
@store_option
@json_option
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List at most N sessions.")
@click.option(
    "--after", default="", metavar="ID", callback=_unicode, help="Start after this session id."
)
@click.option(
    "--prefix", default="", metavar="TEXT", callback=_unicode, help="Only ids that start with TEXT."
)
@click.option(
    "--titles",
    is_flag=True,
    help="Read each session's title too (slow for long sessions without one).",
)
@pass_run
def command(
    run: Run,
    store: str | None,
    as_json: bool,
    limit: int | None,
    after: str,
    prefix: str,
    titles: bool,
) -> None:
    """List the sessions of a store in order of id.

    A session whose header or last event is damaged is flagged, the others are listed all the same;
    `everfold audit --all` looks at every event. With --json: one JSON object a line.
    """
    with reading_store(run.url(store)) as opened:
        found = opened.streams(after=after, limit=limit, prefix=prefix)
        listed = (_listed(opened, summary, titles) for summary in found)
        if as_json:
            for each in listed:
                output.document(_record(each))
            return
        names = ("SESSION", "EVENTS", "CREATED", "LAST EVENT", "LAST TYPE")
        columns = (*names, "TITLE") if titles else names
        rows = (tuple(_row(each, titles)) for each in listed)
        count = output.table((*columns, "FROM"), rows, spare=_SPARE, is_cut=True)
        if count == 0:
            output.say("no session" + (" is left" if after or prefix else " in this store yet"))


def _listed(store: SessionStore, summary: StreamSummary, with_title: bool) -> Listed:
    damage: list[str] = []
    header: dict[str, Json] = {}
    last_ms: int | None = None
    title: str | None = None
    try:
        header = header_of(summary.created)
    except (SessionError, ValueError, TypeError, KeyError) as error:
        damage.append(f"header: {_reason(error)}")
    try:
        # The whole event is decoded, and its stream put together, as a reader of it would do.
        last_ms = int(summary.last.envelope()["time"])
    except (SessionError, ValueError, TypeError, KeyError) as error:
        damage.append(f"seq {summary.last.seq}: {_reason(error)}")
    if with_title:
        title = _title(store, summary.stream_id)
    return Listed(
        session_id=summary.stream_id,
        event_count=seq_of(summary.version) + 1,
        header=header,
        last_type=summary.last.type,
        last_ms=last_ms,
        title=title,
        damage="; ".join(damage) or None,
    )


def _reason(error: Exception) -> str:
    return error.fact if isinstance(error, SessionError) else str(error)


def _title(store: SessionStore, session_id: str) -> str | None:
    try:
        event = store.last_of(session_id, _TITLE_TOPICS)
        title = None if event is None else event.data.get("title")
    except (SessionError, ValueError, AttributeError):
        return None
    return title if isinstance(title, str) else None


def _row(listed: Listed, with_title: bool) -> Iterator[str]:
    yield listed.session_id
    yield str(listed.event_count)
    yield _time(listed.header["createdAt"]) if listed.header else "?"
    yield "?" if listed.last_ms is None else _time(listed.last_ms)
    yield listed.last_type
    if with_title:
        yield listed.title or "-"
    parent = listed.header.get("parentSession")
    yield f"DAMAGED {listed.damage}" if listed.damage else parent or "-"


def _time(time_ms: int) -> str:
    text = moment(time_ms)
    is_short = output.is_rich() and get_terminal_size().columns < _TO_THE_SECOND
    return text.removesuffix("Z")[:-3] if is_short and text.endswith("Z") else text


def _record(listed: Listed) -> dict[str, Json]:
    record: dict[str, Json] = {
        "session": listed.session_id,
        "events": listed.event_count,
        "header": listed.header or None,
        "lastType": listed.last_type,
        "lastTime": listed.last_ms,
        "damage": listed.damage,
    }
    return record if listed.title is None else {**record, "title": listed.title}
