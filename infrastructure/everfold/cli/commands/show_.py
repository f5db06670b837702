"""`everfold show`: what the model sees of a session, or what people saw of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from everfold.audit.requests import nth_request
from everfold.cli import output
from everfold.cli.describe import message_lines, plural
from everfold.cli.options import Run, json_option, pass_run, reading_sessions, store_option
from everfold.cli.reading import check_session, damage_at, decoded, load
from everfold.cli.turns import is_interrupted, turn_record, turn_text
from everfold.cli.visible import one_line
from everfold.host.sessions import Sessions
from everfold.llm.images import images, is_omitted
from everfold.session.derive import message_of
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session
from everfold.session.vocabulary import MESSAGE_TYPES


@dataclass(frozen=True, slots=True)
class Shown:
    """One message to be shown.

    Attributes:
        is_on_surface: whether it is a node as of the event asked for.
        is_interrupted: whether it is an answer that broke off.
    """

    seq: int
    message: Json
    is_on_surface: bool = True
    is_interrupted: bool = False


@click.command("show")
@click.argument("session")
@store_option
@json_option
@click.option("--at", type=int, metavar="SEQ", help="As it was after the event SEQ.")
@click.option("--original", is_flag=True, help="Every message as it was stored: what people saw.")
@click.option(
    "--request", type=click.IntRange(min=1), metavar="N", help="What request N showed the model."
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N messages.")
@pass_run
def command(
    run: Run,
    session: str,
    store: str | None,
    as_json: bool,
    at: int | None,
    original: bool,
    request: int | None,
    last: int | None,
) -> None:
    """Show the messages of SESSION: what the model sees now.

    With --original: every message that was ever stored, in the order of the log, images that are
    omitted now and messages that a summary replaced included.
    """
    if request is not None and (at is not None or original):
        raise click.UsageError("--request takes neither --at nor --original")
    with reading_sessions(run.url(store)) as sessions:
        check_session(sessions.store, session)
        if request is not None:
            at = nth_request(sessions.store, session, sessions.composition, request).seq
        loaded = load(sessions, session, at)
        shown = _originals(sessions, loaded) if original else _current(loaded)
        chosen = shown if last is None else _tail(shown, last)
        fields = _fields(loaded, original=original, request=request)
        if as_json:
            output.document_with_list(fields, "messages", map(_record, chosen))
        else:
            _head(loaded, original=original, request=request)
            counted = _print(chosen)
            output.say(counted if last is None else f"in what is shown here: {counted}")
            told = turn_text(loaded) if at is None else None
            if told is not None:
                output.say(one_line(told))


def _current(session: Session) -> Iterator[Shown]:
    messages = session.messages()
    for position, seq in enumerate(messages.seqs):
        with damage_at(session.id, seq):
            message = messages[position]
        event = session.event(seq)
        yield Shown(seq, message, is_interrupted=event is not None and is_interrupted(event.data))


def _originals(sessions: Sessions, session: Session) -> Iterator[Shown]:
    nodes = frozenset(session.nodes)

    def read(row: Recorded) -> Shown:
        return Shown(row.seq, message_of(row), row.seq in nodes, is_interrupted(row.data))

    if session.next_seq == 0:
        return
    rows = sessions.log(session.id, last=session.next_seq - 1)
    yield from decoded(session.id, (row for row in rows if row.type in MESSAGE_TYPES), read)


def _tail(shown: Iterable[Shown], count: int) -> Iterable[Shown]:
    from collections import deque

    return deque(shown, maxlen=count)


def _fields(session: Session, *, original: bool, request: int | None) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "session": session.id,
        "seq": session.next_seq - 1,
        "view": "original" if original else "model",
        "replaceGeneration": session.replace_generation,
        "contentGeneration": session.content_generation,
        "lastTurn": turn_record(session),
    }
    return fields if request is None else {**fields, "request": request}


def _record(shown: Shown) -> dict[str, Json]:
    record = {"seq": shown.seq, "message": shown.message, "onSurface": shown.is_on_surface}
    return {**record, "interrupted": True} if shown.is_interrupted else record


def _head(session: Session, *, original: bool, request: int | None) -> None:
    when = f"at seq {session.next_seq - 1}" if session.next_seq else "no event yet"
    which = "every message as stored" if original else "what the model sees"
    if request is not None:
        which = f"what request {request} showed the model"
    output.say(f"{one_line(session.id)}, {when}: {which}")


def _print(shown: Iterable[Shown]) -> str:
    """Print messages, and return how many there were, with how many images."""
    count = kept = omitted = 0
    for each in shown:
        count += 1
        content = each.message.get("content") if isinstance(each.message, dict) else None
        for image in images(content if isinstance(content, list) else []):
            omitted += is_omitted(image)
            kept += not is_omitted(image)
        _print_message(each)
    output.say()
    return f"{plural(count, 'message')}, {plural(kept, 'image')}, {omitted} omitted"


def _print_message(shown: Shown) -> None:
    message = shown.message if isinstance(shown.message, dict) else {}
    hidden = "" if shown.is_on_surface else "  (hidden from the model)"
    broken = "  (interrupted: the answer is not whole)" if shown.is_interrupted else ""
    output.say()
    output.say(f"[{shown.seq}] {one_line(str(message.get('role')))}{broken}{hidden}")
    for line in message_lines(message):
        output.say(f"    {line}")
