"""Structural prices: R298 to R301."""

import pytest

from everfold.projections.token_meter.prices import (
    block_price,
    json_length,
    message_price,
    tools_price,
    utf16_length,
)
from tests.domain.kit import assistant, image, system, text, tool_result, user

CALL = {"type": "tool-call", "id": "c", "name": "grep-all", "arguments": '{"q":"abcd"}'}


def test_r298_text_and_reasoning_cost_a_quarter_a_unit_rounded_up_and_four() -> None:
    assert [block_price(text("a" * size)) for size in (0, 1, 4, 5)] == [4, 5, 5, 6]
    assert block_price({"type": "reasoning", "text": "abcde"}) == 6


def test_r298_a_tool_call_costs_its_name_and_its_arguments_rounded_apart() -> None:
    assert block_price(CALL) == 2 + 3 + 4


def test_r298_a_tool_result_costs_its_content_and_four() -> None:
    block = tool_result("c", text("abcd"), text(""))["message"]["content"][0]

    assert block_price(block) == (5 + 4) + 4


def test_r298_any_other_block_costs_its_json() -> None:
    block = {"type": "file", "attachment": {"attachmentId": "f", "name": "n", "bytes": 1}}

    assert (
        block_price(block)
        == -(-len('{"type":"file","attachment":{"attachmentId":"f","name":"n","bytes":1}}') // 4)
        + 4
    )
    assert block_price("abcdef") == 2 + 4
    assert block_price({"type": "text", "text": 7}) == -(-len('{"type":"text","text":7}') // 4) + 4


def test_r298_a_message_costs_its_content_and_four() -> None:
    assert message_price(user("u", text("abcd"), text("abcd"))) == 5 + 5 + 4
    assert message_price(user("u")) == 4


def test_r299_a_system_message_costs_its_text_without_overhead_of_blocks() -> None:
    message = system("s", text("abc"), text("de"))["message"]

    assert message_price(message) == 2 + 4


@pytest.mark.parametrize("data", [system("s"), assistant("a")])
def test_r299_empty_content_that_is_not_sent_costs_nothing(
    data: dict[str, dict[str, object]],
) -> None:
    assert message_price(data["message"]) == 0


def test_r300_lengths_are_in_utf16_units() -> None:
    assert utf16_length("née") == 3
    assert utf16_length("\U0001f600") == 2
    assert block_price(text("\U0001f600" * 2 + "a")) == 2 + 4


def test_r300_tools_cost_their_json_and_four_and_none_cost_nothing() -> None:
    tools = [{"name": "t", "description": "é", "parameters": {"type": "object"}}]

    assert (
        tools_price(tools)
        == -(-len('[{"name":"t","description":"é","parameters":{"type":"object"}}]') // 4) + 4
    )
    assert tools_price([]) == tools_price(None) == 0


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.0, "1"),
        (-0.5, "-0.5"),
        (0.00001, "0.00001"),
        (1e-7, "1e-7"),
        (1.5e-9, "1.5e-9"),
        ([0.1, {"a": 2.0}], '[0.1,{"a":2}]'),
        ('"\n\x01', '"\\"\\n\\u0001"'),
    ],
)
def test_r300_json_has_the_length_that_javascript_writes(value: object, written: str) -> None:
    assert json_length(value) == len(written)


def test_r301_the_price_of_an_image_does_not_depend_on_its_mark() -> None:
    kept = block_price(image(1))

    assert block_price(image(1, offloaded=True)) == kept
    assert block_price(image(1, offloaded=False)) == kept
    assert kept == -(-json_length(image(1)) // 4) + 4
