"""Naming images of a session: `SEQ:INDEX`, and listing all of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import click

from everfold.attachments.references import Holds, is_missing
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


@dataclass(frozen=True, slots=True)
class ListedImage:
    """One image on the surface.

    Attributes:
        decided_by: the type of the event that decided its state; None if nobody decided anything.
        is_missing: its bytes are not there.
    """

    found: Occurrence
    decided_by: str | None
    is_missing: bool


def listed(sessions: Sessions, session_id: str, held: Holds) -> list[ListedImage]:
    """Return every image on the surface.

    Args:
        held: where its bytes should be.

    Raises:
        SessionError: there is no such session, or it cannot be read here.
    """
    session = sessions.load(session_id)
    decisions = [event for event in sessions.log(session_id) if event.type in DECISIONS]
    types = {event.seq: event.type for event in decisions}
    return [
        ListedImage(
            each,
            None if each.decided_by is None else types.get(each.decided_by, "the message itself"),
            is_missing({"attachment": each.attachment}, held),
        )
        for each in occurrences(session, decisions)
    ]


def row(image: ListedImage) -> tuple[str, ...]:
    """Return an image as a row of a table."""
    found, attachment = image.found, image.found.attachment
    return (
        f"{found.seq}:{found.index}",
        f"{found.state}, missing" if image.is_missing else found.state,
        "-" if image.decided_by is None else f"{found.decided_by} {image.decided_by}",
        str(attachment.get("name", "-")),
        str(attachment.get("mediaType", "-")),
        f"{attachment.get('width', '?')}x{attachment.get('height', '?')}",
        size(attachment.get("bytes")),
        str(attachment.get("attachmentId", "?"))[:19],
    )


def record(image: ListedImage) -> dict[str, Json]:
    """Return an image as JSON."""
    found, by = image.found, image.decided_by
    shown: dict[str, Json] = {
        "image": f"{found.seq}:{found.index}",
        "seq": found.seq,
        "index": found.index,
        "state": found.state,
        "decidedBy": None if by is None else {"seq": found.decided_by, "type": by},
        "attachment": dict(found.attachment),
    }
    return {**shown, "missing": True} if image.is_missing else shown


def totals(images: Sequence[ListedImage]) -> str:
    """Return how many images there are in which state."""
    states = [image.found.state for image in images]
    missing = sum(image.is_missing for image in images)
    said = (
        f"{len(states)} in all, {states.count('retained')} shown to models, "
        f"{states.count('omitted')} omitted"
    )
    return f"{said}, {missing} missing" if missing else said
