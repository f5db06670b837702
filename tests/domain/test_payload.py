"""Rules for event data: groups B and C, at an append (V1)."""

from typing import Any

import pytest

from everfold.session.errors import (
    MessageShapeError,
    PayloadError,
    SessionError,
    SettlementError,
)
from everfold.session.frozen import Json
from everfold.session.payload import check_payload
from tests.domain.kit import Record, assistant, system, text, tool_result, user

CONFIG = {"provider": "p", "model": "m"}
GAP = object()


def header(reason: Json = "initial", **fields: Json) -> Record:
    """Data of a `request/header`."""
    return {"header": {"config": CONFIG, **fields}, "reason": reason}


def but(data: Record, path: str, value: Any) -> Record:
    """Return data with another value at a dotted path; `GAP` removes it."""
    name, _, rest = path.partition(".")
    if rest:
        return {**data, name: but(data[name], rest, value)}
    if value is GAP:
        return {key: item for key, item in data.items() if key != name}
    return {**data, name: value}


def refused(error: type[SessionError], type_: str, data: Json) -> str:
    """The refusal of this data."""
    with pytest.raises(error) as caught:
        check_payload(type_, data, 7)
    assert caught.value.seq == 7
    return str(caught.value)


@pytest.mark.parametrize("data", [None, [], 5, {}, {"header": None}, {"header": []}])
def test_a_request_header_holds_an_object_r15(data: Json) -> None:
    assert "object `header`" in refused(PayloadError, "request/header", data)


@pytest.mark.parametrize("value", ["prompt", None, []])
def test_the_prompt_is_no_header_field_r16(value: Json) -> None:
    assert "`system` key" in refused(PayloadError, "request/header", header(system=value))


def test_empty_lists_are_left_out_r17_r18() -> None:
    assert "tools is empty" in refused(PayloadError, "request/header", header(tools=[]))
    assert "adapterDefaults is empty" in refused(
        PayloadError, "request/header", header(adapterDefaults={})
    )


@pytest.mark.parametrize("value", ["", None, 5, GAP])
@pytest.mark.parametrize("name", ["provider", "model"])
def test_config_names_provider_and_model_r35(name: str, value: Any) -> None:
    data = but(header(), f"header.config.{name}", value)

    assert f"config.{name}" in refused(PayloadError, "request/header", data)


@pytest.mark.parametrize("value", ["", None, 5])
def test_an_effort_is_text_r36(value: Json) -> None:
    data = but(header(), "header.config.reasoningEffort", value)

    assert "reasoningEffort" in refused(PayloadError, "request/header", data)


@pytest.mark.parametrize(
    "defaults",
    [None, [], {"x": True}, {"maxTokens": False}, {"maxTokens": 1}, {"maxTokens": True}],
)
def test_default_marks_are_true_and_mark_a_field_r37(defaults: Json) -> None:
    data = header(adapterDefaults=defaults)

    assert "adapterDefaults" in refused(PayloadError, "request/header", data)


def test_a_default_mark_of_a_present_field_passes_r37() -> None:
    data = header(adapterDefaults={"maxTokens": True})

    check_payload("request/header", but(data, "header.config.maxTokens", 5), 7)


@pytest.mark.parametrize("reason", ["", None, "first", ["initial"], GAP])
def test_a_header_says_why_it_is_written_r38(reason: Any) -> None:
    assert "reason" in refused(PayloadError, "request/header", but(header(), "reason", reason))


@pytest.mark.parametrize("reason", ["initial", "resume", "change", "series"])
def test_four_reasons_are_known_r38(reason: str) -> None:
    check_payload("request/header", {**header(reason), "startsSeries": True}, 7)


@pytest.mark.parametrize("value", [False, None, 1])
def test_starts_series_is_true_or_left_out_r38(value: Json) -> None:
    assert "startsSeries" in refused(
        PayloadError, "request/header", {**header(), "startsSeries": value}
    )


@pytest.mark.parametrize("data", [None, [], 5])
def test_tool_result_data_is_an_object_r19(data: Json) -> None:
    assert "not an object" in refused(PayloadError, "tool/result", data)


@pytest.mark.parametrize("error", [None, {"name": "E"}])
@pytest.mark.parametrize("mark", [GAP, False, None, 1, "true"])
def test_an_error_needs_an_error_block_r20(error: Json, mark: Any) -> None:
    data = tool_result(error=error)
    data["message"]["content"] = [but(data["message"]["content"][0], "isError", mark)]

    assert "isError" in refused(PayloadError, "tool/result", data)


def test_an_error_without_any_block_is_refused_r20() -> None:
    assert "isError" in refused(
        PayloadError, "tool/result", but(tool_result(error={}), "message", None)
    )


def test_an_error_block_without_error_is_fine_r21() -> None:
    data = tool_result()
    data["message"]["content"][0]["isError"] = True

    check_payload("tool/result", data, 7)


MESSAGES = {
    "user/message": ("", user("u", text("x"))),
    "system/message": ("message.", system("s", text("x"))),
    "assistant/message": ("message.", assistant("a", text("x"))),
    "tool/result": ("message.", tool_result("c", text("x"))),
}


@pytest.mark.parametrize("type_", MESSAGES)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        *[("id", value) for value in ("", None, 5, GAP)],
        *[("role", value) for value in ("", "tool", None, ["user"], GAP)],
        *[("source", value) for value in (None, [], "user", GAP)],
        *[("source.kind", value) for value in ("", None, 5, GAP)],
        *[("content", value) for value in (None, "text", {}, GAP)],
    ],
)
def test_a_message_has_id_role_source_and_content_r25_to_r28(
    type_: str, path: str, value: Any
) -> None:
    prefix, data = MESSAGES[type_]

    assert path in refused(MessageShapeError, type_, but(data, prefix + path, value))


@pytest.mark.parametrize("type_", MESSAGES)
def test_whole_messages_pass(type_: str) -> None:
    check_payload(type_, MESSAGES[type_][1], 7)


@pytest.mark.parametrize(
    ("type_", "role"),
    [
        ("user/message", "system"),
        ("user/message", "assistant"),
        ("system/message", "user"),
        ("assistant/message", "user"),
        ("tool/result", "assistant"),
    ],
)
def test_the_role_fits_the_type_r26(type_: str, role: str) -> None:
    prefix, data = MESSAGES[type_]

    assert f"role '{role}'" in refused(MessageShapeError, type_, but(data, prefix + "role", role))


@pytest.mark.parametrize("type_", ["user/message", "system/message", "assistant/message"])
@pytest.mark.parametrize("data", [None, 5, [], "text"])
def test_message_data_is_an_object_r25(type_: str, data: Json) -> None:
    assert "object" in refused(MessageShapeError, type_, data)


@pytest.mark.parametrize("block", [None, 5, "text", [], {}, {"type": "new"}, {"type": 5}])
def test_single_blocks_are_not_inspected_r28(block: Json) -> None:
    for type_ in ("user/message", "system/message", "assistant/message"):
        prefix, data = MESSAGES[type_]
        check_payload(type_, but(data, prefix + "content", [block]), 7)


@pytest.mark.parametrize("value", ["", None, 5, GAP])
def test_a_system_message_is_from_a_named_plugin_r29(value: Any) -> None:
    data = but(system(), "message.source.plugin", value)

    assert "plugin" in refused(MessageShapeError, "system/message", data)


@pytest.mark.parametrize("name", ["provider", "model"])
@pytest.mark.parametrize("value", ["", None, 5, GAP])
def test_an_assistant_message_is_from_a_model_r30(name: str, value: Any) -> None:
    data = but(assistant(), f"message.source.{name}", value)

    assert "model" in refused(MessageShapeError, "assistant/message", data)


@pytest.mark.parametrize("type_", ["system/message", "assistant/message", "tool/result"])
def test_the_source_kind_fits_the_type_r29_to_r31(type_: str) -> None:
    refused(MessageShapeError, type_, but(MESSAGES[type_][1], "message.source.kind", "user"))


def test_a_tool_result_has_one_result_block_of_its_call_r31_r32() -> None:
    good = tool_result("c")
    (block,) = good["message"]["content"]

    for path, value, reason in [
        ("message.source.callId", "", "callId"),
        ("message.source.callId", "d", "toolCallId 'c' is not callId 'd'"),
        ("message.content", [], "exactly one"),
        ("message.content", [block, block], "exactly one"),
        ("message.content", [text("x")], "exactly one"),
        ("message.content", [5], "exactly one"),
        ("message.content", [{**block, "content": None}], "not a list"),
        ("message.content", [{**block, "toolCallId": "d"}], "toolCallId 'd'"),
        ("message.content", [but(block, "toolCallId", GAP)], "toolCallId None"),
    ]:
        assert reason in refused(MessageShapeError, "tool/result", but(good, path, value))


@pytest.mark.parametrize("name", ["turn", "step"])
@pytest.mark.parametrize("value", [-1, 0.5, -0.0, True, "1", None, GAP])
@pytest.mark.parametrize("type_", ["assistant/message", "assistant/attempt"])
def test_turn_and_step_are_whole_r33(type_: str, name: str, value: Any) -> None:
    assert name in refused(SettlementError, type_, but(assistant(), name, value))


@pytest.mark.parametrize("type_", ["assistant/message", "assistant/attempt"])
def test_the_stream_is_a_list_whose_records_are_free_r33_r34(type_: str) -> None:
    for value in (None, {}, GAP):
        assert "stream" in refused(SettlementError, type_, but(assistant(), "stream", value))
    check_payload(type_, {**assistant(), "turn": 0, "step": 0.0, "stream": [5, None]}, 7)


def test_an_attempt_is_an_object_r33() -> None:
    assert "not an object" in refused(SettlementError, "assistant/attempt", [])


def test_shape_faults_come_in_order_r39() -> None:
    broken: Record = {"id": "", "role": 5, "source": None, "content": None}
    mends: list[tuple[str, Record]] = [
        ("id", {"id": "u"}),
        ("role", {"role": "user"}),
        ("source is", {"source": {"kind": ""}}),
        ("content", {"content": []}),
        ("source.kind", {"source": {"kind": "user"}}),
    ]

    for reason, mend in mends:
        assert reason in refused(MessageShapeError, "user/message", broken)
        broken |= mend
    check_payload("user/message", broken, 7)


def test_types_without_a_rule_pass() -> None:
    check_payload("todo/write", float, 7)
