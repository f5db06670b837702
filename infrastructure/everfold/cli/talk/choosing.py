"""Naming images of a session: `SEQ:INDEX`, and listing all of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import click

from everfold.cli.describe import size
from everfold.host.sessions import Sessions
from everfold.projections.image_offload.decisions import DECISIONS, Occurrence, occurrences
from everfold.session.frozen import Json

_MAX_DIGITS = 15
COLUMNS = ("IMAGE", "STATE", "DECIDED BY", "NAME", "TYPE", "PIXELS", "SIZE", "ATTACHMENT")
SPARE = ("ATTACHMENT", "TYPE", "PIXELS", "SIZE", "DECIDED BY")
"""Those that a narrow terminal is not shown, in this order."""


def chosen(words: Sequence[str]) -> dict[int, list[int]]:
    """Return the image indexes by seq that words name, `5:0` or `5:0,2` each.

    Raises:
        click.UsageError: a word names no image.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    for word in words:
        seq, _, indexes = word.partition(":")
        try:
            numbers = [_whole(index) for index in indexes.split(",")]
            found[_whole(seq)].extend(numbers)
        except ValueError:
            raise click.UsageError(
                f"{word!r} names no image; write SEQ:INDEX, as `everfold images` lists them"
            ) from None
    return dict(found)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS:
        raise ValueError(text)
    return int(text)


def listed(sessions: Sessions, session_id: str) -> list[tuple[Occurrence, str | None]]:
    """Return every image on the surface, with the type of the event that decided its state.

    Raises:
        SessionError: there is no such session, or it cannot be read here.
    """
    session = sessions.load(session_id)
    decisions = [event for event in sessions.log(session_id) if event.type in DECISIONS]
    types = {event.seq: event.type for event in decisions}
    return [
        (
            each,
            None if each.decided_by is None else types.get(each.decided_by, "the message itself"),
        )
        for each in occurrences(session, decisions)
    ]


def row(found: Occurrence, by: str | None) -> tuple[str, ...]:
    """Return an image as a row of a table."""
    attachment = found.attachment
    decided = "-" if by is None else f"{found.decided_by} {by}"
    return (
        f"{found.seq}:{found.index}",
        found.state,
        decided,
        str(attachment.get("name", "-")),
        str(attachment.get("mediaType", "-")),
        f"{attachment.get('width', '?')}x{attachment.get('height', '?')}",
        size(attachment.get("bytes")),
        str(attachment.get("attachmentId", "?"))[:19],
    )


def record(found: Occurrence, by: str | None) -> dict[str, Json]:
    """Return an image as JSON."""
    decided = None if by is None else {"seq": found.decided_by, "type": by}
    return {
        "image": f"{found.seq}:{found.index}",
        "seq": found.seq,
        "index": found.index,
        "state": found.state,
        "decidedBy": decided,
        "attachment": dict(found.attachment),
    }


def totals(found: Iterable[tuple[Occurrence, str | None]]) -> str:
    """Return how many images there are in which state."""
    states = [each.state for each, _ in found]
    return f"{len(states)} in all, {states.count('retained')} shown to models, {states.count('omitted')} omitted"
