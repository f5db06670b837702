"""Checking that images which people name are there, before a decision about them is made."""

from collections.abc import Mapping, Sequence

from everfold.cli.describe import plural
from everfold.llm.images import images
from everfold.projections.image_offload.errors import OffloadIndexError, OffloadTargetError
from everfold.session.session import Session


def check_images(session: Session, chosen: Mapping[int, Sequence[int]]) -> None:
    """Refuse images that no message shows, in the words in which people named them.

    Args:
        chosen: image indexes by seq of the message.

    Raises:
        OffloadTargetError: no message that models are shown has this seq.
        OffloadIndexError: its message has fewer images.
    """
    for seq, indexes in chosen.items():
        if seq not in session.nodes:
            raise OffloadTargetError(
                f"target {seq} is not on the surface: models are shown no message of this seq; "
                f"`everfold images {session.id}` lists the images"
            )
        count = _count(session, seq)
        for index in indexes:
            if index >= count:
                raise OffloadIndexError(
                    f"image {seq}:{index} is beyond the message's {plural(count, 'image')}"
                    f"{_there(seq, count)}"
                )


def _count(session: Session, seq: int) -> int:
    messages = session.messages()
    message = messages[list(messages.seqs).index(seq)]
    content = message.get("content") if isinstance(message, Mapping) else None
    return len(list(images(content))) if isinstance(content, list) else 0


def _there(seq: int, count: int) -> str:
    if count == 0:
        return ""
    last = f"{seq}:{count - 1}"
    return f", which is {seq}:0" if count == 1 else f", which are {seq}:0 to {last}"
