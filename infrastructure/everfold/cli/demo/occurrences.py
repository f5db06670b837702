"""The images of a conversation, one entry for each time one is shown."""

from collections.abc import Iterable
from dataclasses import dataclass

from everfold.llm.images import images, is_omitted
from everfold.session.frozen import Json


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place where a message shows an image.

    Attributes:
        seq: the event of the message.
        index: which of the message's images it is, from 0.
    """

    seq: int
    index: int
    name: str
    bytes: int
    is_omitted: bool


def occurrences(messages: Iterable[tuple[int, Json]]) -> list[Occurrence]:
    """Return the images of messages with their seqs, oldest first."""
    return [
        Occurrence(
            seq=seq,
            index=index,
            name=str(image["attachment"].get("name", "image")),
            bytes=image["attachment"]["bytes"],
            is_omitted=is_omitted(image),
        )
        for seq, message in messages
        for index, image in enumerate(images(message["content"]))
    ]
