"""Typed views: what they show, what they keep, and that they never refuse a stored block."""

import pytest
from hypothesis import given
from pydantic import ValidationError

from everfold.session.frozen import Json, json_equal
from everfold.session.messages import (
    FileBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    typed_block,
    typed_message,
)
from tests.domain.kit import HEADER, image, new_session, omit, text, tool_result, user
from tests.domain.logs import contents


def test_a_message_shows_its_blocks_by_type() -> None:
    session = new_session(header=HEADER)
    session.append("user/message", user("u", text("see"), image(1)), {"surfaceOp": "append"})
    session.append("image/offload", omit((0, [0])))

    shown = session.messages().typed()[0]

    assert shown.text == "see"
    words, picture = shown.content
    assert isinstance(words, TextBlock)
    assert isinstance(picture, ImageBlock)
    assert picture.offloaded
    assert picture.attachment.media_type == "image/png"
    assert picture.attachment.bytes == 1001


def test_a_tool_result_shows_what_is_inside() -> None:
    message = typed_message(tool_result("c1", text("done"), image(2))["message"])

    block = message.content[0]

    assert isinstance(block, ToolResultBlock)
    assert block.tool_call_id == "c1"
    assert [inner.type for inner in block.content] == ["text", "image"]
    assert message.source.kind == "tool"


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "reasoning", "text": "hm"}, ReasoningBlock),
        ({"type": "tool-call", "id": "c", "name": "n", "arguments": "{}"}, ToolCallBlock),
        (
            {"type": "file", "attachment": {"attachmentId": "f", "name": "n", "bytes": 1}},
            FileBlock,
        ),
        ({"type": "acme/chart", "points": [1, 2]}, UnknownBlock),
        ({"type": "image"}, UnknownBlock),
        ({"type": "text", "text": 5}, UnknownBlock),
        ("not an object", UnknownBlock),
        (None, UnknownBlock),
    ],
)
def test_a_block_is_seen_as_what_it_is(block: Json, kind: type) -> None:
    assert type(typed_block(block)) is kind


def test_unknown_fields_of_known_blocks_are_kept() -> None:
    stored = {"type": "text", "text": "x", "cacheHint": {"ttl": 5}, "cache_hint": [1]}

    assert typed_block(stored).to_json() == stored


def test_a_view_cannot_be_changed() -> None:
    block = typed_block(text("x"))

    with pytest.raises(ValidationError, match="frozen"):
        block.text = "y"  # type: ignore[union-attr]  # the point of the test


def test_a_view_is_made_once_for_each_message_of_a_conversation() -> None:
    session = new_session(header=HEADER)
    session.append("user/message", user("u", text("hi")), {"surfaceOp": "append"})
    conversation = session.messages()

    assert conversation.typed()[0] is conversation.typed()[0]


@given(contents)
def test_any_content_comes_back_as_it_was(content: list[Json]) -> None:
    message = user("u", *content)

    assert json_equal(typed_message(message).to_json(), message)
