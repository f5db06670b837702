"""The tool of the demonstration: it crops a stored image and stores the result as a new one."""

from collections.abc import Callable, Sequence

from everfold.attachments.admission import Source, admit
from everfold.attachments.ports import AttachmentStore
from everfold.session.frozen import Json

Tool = Callable[[], Sequence[Json]]
"""Runs the tool and returns the content of its result."""


def image_block(reference: Json) -> dict[str, Json]:
    """Return the content block that shows a stored image."""
    return {"type": "image", "attachment": reference}


def zoom_tool(attachments: AttachmentStore, image: Json) -> Tool:
    """Return the tool that gives the middle of this image."""

    def zoom() -> Sequence[Json]:
        from everfold.cli.demo.pictures import zoomed

        reference = image["attachment"]
        data = zoomed(attachments.read(reference["attachmentId"]))
        stem = str(reference.get("name", "image")).rpartition(".")[0]
        source = Source(data, f"zoom-{stem}.png", "image/png", "image")
        return [
            {"type": "text", "text": "the middle, enlarged"},
            *map(image_block, admit([source], attachments)),
        ]

    return zoom


def no_tool() -> Sequence[Json]:
    """Answer a call that the script does not foresee."""
    return [{"type": "text", "text": "there is no such tool"}]
