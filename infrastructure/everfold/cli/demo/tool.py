"""The tool of the demonstration: it crops a stored image and gives the result as a new one."""

from collections.abc import Callable

from everfold.agent.tools import ImageData, ToolOutput
from everfold.attachments.ports import AttachmentStore
from everfold.session.frozen import Json


def image_block(reference: Json) -> dict[str, Json]:
    """Return the content block that shows a stored image."""
    return {"type": "image", "attachment": reference}


def zoom_tool(attachments: AttachmentStore, image: Json) -> Callable[[], ToolOutput]:
    """Return the tool that gives the middle of this image."""

    def zoom() -> ToolOutput:
        from everfold.cli.demo.pictures import zoomed

        reference = image["attachment"]
        data = zoomed(attachments.read(reference["attachmentId"]))
        stem = str(reference.get("name", "image")).rpartition(".")[0]
        return ToolOutput(("the middle, enlarged", ImageData(data, f"zoom-{stem}.png")))

    return zoom
