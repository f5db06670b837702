"""Real images through the real admission: of users, of tools, and those that are none."""

import io
from pathlib import Path

import pytest
from PIL import Image

from everfold.agent.admitting import admit_into
from everfold.agent.tools import ImageData
from everfold.attachments.errors import AdmissionError
from everfold.attachments.filesystem import FileAttachments
from everfold.routes.scripted import calls, says
from tests.agent.kit import Host, run


def picture(color: str) -> bytes:
    """Return a small PNG file."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), color).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_users_picture_is_stored_and_referred_to(host: Host, tmp_path: Path) -> None:
    agent = host.agent(host.route(), admit=admit_into(FileAttachments(tmp_path / "files")))

    run(agent.ask(["look", ImageData(picture("red"), "red.png")]))

    attachment = host.data(agent.session_id, "user/message")[0]["content"][1]["attachment"]
    assert (attachment["width"], attachment["height"], attachment["name"]) == (8, 6, "red.png")


def test_what_is_no_picture_is_refused_and_stores_no_event(host: Host, tmp_path: Path) -> None:
    agent = host.agent(host.route(), admit=admit_into(FileAttachments(tmp_path / "files")))

    with pytest.raises(AdmissionError):
        run(agent.ask([ImageData(picture("red")), ImageData(b"no picture")]))

    assert host.log(agent.session_id) == []


def test_a_tools_picture_that_is_none_fails_that_call_alone(host: Host, tmp_path: Path) -> None:
    def shoot(good: bool) -> ImageData:
        return ImageData(picture("blue") if good else b"no picture")

    route = host.route(
        calls(("c1", "shoot", {"good": True}), ("c2", "shoot", {"good": False})), says("ok")
    )
    store = FileAttachments(tmp_path / "files")
    agent = host.agent(route, tools=[shoot], admit=admit_into(store))

    run(agent.ask("go"))

    blocks = [data["message"]["content"][0] for data in host.data(agent.session_id, "tool/result")]
    assert [block.get("isError", False) for block in blocks] == [False, True]
    assert blocks[0]["content"][0]["type"] == "image"
