"""What tools return, and what the model reads of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from pydantic import BaseModel, ConfigDict

from everfold.agent.tools import ImageData, ToolOutput
from everfold.routes.scripted import calls, says
from everfold.session.frozen import Json
from tests.agent.answers import answered, block, text
from tests.agent.kit import Host, admits, run


class Place(BaseModel):
    city: str
    lat: float = 0.0


@dataclass
class Size:
    width: int


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("plain", "plain"),
        (None, "(no output)"),
        ("", "(no output)"),
        (3, "3"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([], "[]"),
        (["a", "b"], '["a","b"]'),
        (ToolOutput("one text"), "one text"),
        (Place(city="Ulm"), '{"city":"Ulm","lat":0.0}'),
        (Size(3), '{"width":3}'),
        ("bad \udcff", "bad \ufffd"),
        ({"t": "bad \udcff"}, "bad"),
        (float("nan"), "NaN"),
        ("nul \0 stays", "nul \0 stays"),
        ({"day": date(2026, 5, 1), "of": {1}}, '{"day":"2026-05-01","of":[1]}'),
        ((number for number in (1, 2)), "[1,2]"),
    ],
)
def test_what_a_tool_returns_becomes_text(host: Host, value: object, said: str) -> None:
    def give() -> object:
        return value

    assert said in text(answered(host, give))


class Handle:
    pass


class Held(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    handle: Handle


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Handle(), "Handle"),
        ({"deep": [Handle()]}, "Handle"),
        ((item for item in (1, Handle())), "Handle"),
        (Held(handle=Handle()), "Handle"),
        (object, "type"),
        (b"\xff\xfe", "bytes"),
    ],
)
def test_a_result_without_a_json_form_is_an_error_that_says_so(
    host: Host, value: object, said: str
) -> None:
    def give() -> object:
        return value

    data = answered(host, give)

    assert block(data)["isError"] is True
    assert data["error"] == {"name": "ToolResultError", "code": "TOOL_FAILED"}
    assert "has no JSON form" in text(data)
    assert said in text(data)
    assert " at 0x" not in text(data)


@pytest.mark.parametrize("mode", ["RGB", "CMYK", "P", "F"])
def test_an_image_of_pillow_is_admitted_as_any_other(host: Host, mode: str) -> None:
    admitted: list[ImageData] = []

    def keeping(images: Sequence[ImageData]) -> list[Json]:
        admitted.extend(images)
        return admits(images)

    def shoot(number: int) -> object:
        drawing: Any = Image.new(mode, (4, 3))
        return (drawing, ["here", drawing], ToolOutput([drawing]))[number]

    wanted = [(f"c{number}", "shoot", {"number": number}) for number in range(3)]
    agent = host.agent(host.route(calls(*wanted), says("ok")), tools=[shoot], admit=keeping)

    run(agent.ask("go"))

    results = [block(data)["content"] for data in host.data(agent.session_id, "tool/result")]
    assert [[part["type"] for part in parts] for parts in results] == [
        ["image"],
        ["text", "image"],
        ["image"],
    ]
    assert [Image.open(BytesIO(image.data)).size for image in admitted] == [(4, 3)] * 3


def test_an_image_of_pillow_is_an_error_where_no_images_are_admitted(host: Host) -> None:
    def shoot() -> object:
        return Image.new("RGB", (4, 3))

    agent = host.agent(host.route(calls(("c", "shoot", {})), says("ok")), tools=[shoot])

    run(agent.ask("go"))

    assert "has no store for images" in text(host.data(agent.session_id, "tool/result")[0])


def test_what_was_mended_in_a_result_is_logged(host: Host) -> None:
    def give() -> str:
        return "bad \udcff"

    agent = host.agent(host.route(calls(("c", "give", {})), says("ok")), tools=[give])

    run(agent.ask("go"))

    result = host.data(agent.session_id, "tool/result")[0]
    repaired = host.data(agent.session_id, "content/repaired")[0]
    assert repaired["messageId"] == result["message"]["id"]


def test_a_result_may_hold_images(host: Host) -> None:
    def shoot() -> ToolOutput:
        return ToolOutput(("two", ImageData(b"\x01"), ImageData(b"\x02\x02")), meta={"dpi": 72})

    data = answered(host, shoot)

    assert [part["type"] for part in block(data)["content"]] == ["text", "image", "image"]
    assert block(data)["content"][2]["attachment"]["bytes"] == 2
    assert data["meta"] == {"dpi": 72}
