"""The rules for event data that every door applies (groups B and C, V1)."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import NoReturn

from everfold.session.errors import MessageShapeError, PayloadError, SettlementError
from everfold.session.frozen import Json
from everfold.session.lossless import natural

Check = Callable[[Json, int], None]
"""Refuses data, at a seq, that breaks the rule of its event type."""

_ROLES = {
    "system/message": "system",
    "user/message": "user",
    "assistant/message": "assistant",
    "tool/result": "user",
}
_REASONS = ("initial", "resume", "change", "series")
_DEFAULTS = ("reasoningEffort", "maxTokens")
_FIELDS = itemgetter("id", "role", "source", "content")


def check_payload(type_: str, data: Json, seq: int) -> None:
    """Refuse data that breaks a rule of its event type; types without a rule pass.

    Raises:
        PayloadError: request/header or tool/result (R15 to R20, R35 to R38).
        MessageShapeError: a message that is none (R25 to R32).
        SettlementError: turn, step or stream of an assistant record (R33).
    """
    check = _CHECKS.get(type_)
    if check is not None:
        check(data, seq)


def check_of(type_: str) -> Check | None:
    """Return what `check_payload` does for a type, as a function of data and seq; None for nothing."""
    return _CHECKS.get(type_)


def _check_request_header(data: Json, seq: int) -> None:
    if not isinstance(data, dict) or not isinstance(data.get("header"), dict):
        raise PayloadError("request/header needs an object `header`", seq=seq)
    header = data["header"]
    fault = _static_fault(header) or _config_fault(header)
    if fault is None and data.get("reason") not in _REASONS:
        fault = f"reason {data.get('reason')!r} is not one of {', '.join(_REASONS)}"
    if fault is None and data.get("startsSeries", True) is not True:
        fault = f"startsSeries is {data['startsSeries']!r}; it is true or it is left out"
    if fault is not None:
        raise PayloadError(f"request/header: {fault}", seq=seq)


def _static_fault(header: Mapping[str, Json]) -> str | None:
    if "system" in header:
        return "the header has a `system` key; the prompt lives in system/message"
    if header.get("tools") == []:
        return "tools is empty; leave it out"
    if header.get("adapterDefaults") == {}:
        return "adapterDefaults is empty; leave it out"
    return None


def _config_fault(header: Mapping[str, Json]) -> str | None:
    config = header.get("config")
    if not isinstance(config, dict):
        return "config is not an object"
    for name in ("provider", "model"):
        if not _is_name(config.get(name)):
            return f"config.{name} is not a text of at least one character"
    if "reasoningEffort" in config and not _is_name(config["reasoningEffort"]):
        return "config.reasoningEffort is not a text of at least one character"
    return _defaults_fault(header.get("adapterDefaults", {}), config)


def _defaults_fault(defaults: Json, config: Mapping[str, Json]) -> str | None:
    if not isinstance(defaults, dict):
        return "adapterDefaults is not an object"
    for name, value in defaults.items():
        if name not in _DEFAULTS:
            return f"adapterDefaults.{name} is not one of {', '.join(_DEFAULTS)}"
        if value is not True:
            return f"adapterDefaults.{name} is {value!r}; it is true or it is left out"
        if name not in config:
            return f"adapterDefaults.{name} marks a field that config does not have"
    return None


def _check_user_message(data: Json, seq: int) -> None:
    if not _is_message(data, "user"):
        _check_message("user/message", data, seq)


def _check_system_message(data: Json, seq: int) -> None:
    type_ = "system/message"
    source = _check_message(type_, _inner(data, type_, seq), seq)
    if source["kind"] != "plugin" or not _is_name(source.get("plugin")):
        _refuse(type_, seq, "source is not that of a named plugin")


def _check_assistant_message(data: Json, seq: int) -> None:
    type_ = "assistant/message"
    source = _check_message(type_, _inner(data, type_, seq), seq)
    named = _is_name(source.get("provider")) and _is_name(source.get("model"))
    if source["kind"] != "model" or not named:
        _refuse(type_, seq, "source does not name a model's provider and model")
    _check_settlement(type_, data, seq)


def _check_tool_result(data: Json, seq: int) -> None:
    type_ = "tool/result"
    if not isinstance(data, dict):
        raise PayloadError("tool/result data is not an object", seq=seq)
    if "error" in data and not _is_error_block(data.get("message")):
        raise PayloadError(
            "tool/result carries `error`, so its first block needs isError: true", seq=seq
        )
    message = _inner(data, type_, seq)
    source = _check_message(type_, message, seq)
    if source["kind"] != "tool" or not _is_name(source.get("callId")):
        _refuse(type_, seq, "source is not that of a tool call with a callId")
    _check_tool_block(type_, message["content"], source["callId"], seq)


def _is_error_block(message: Json) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and first.get("isError") is True


def _check_tool_block(type_: str, content: list[Json], call_id: str, seq: int) -> None:
    block = content[0] if len(content) == 1 else None
    if not isinstance(block, dict) or block.get("type") != "tool-result":
        _refuse(type_, seq, "content is not exactly one tool-result block")
    if not isinstance(block.get("content"), list):
        _refuse(type_, seq, "the tool-result block's content is not a list")
    if block.get("toolCallId") != call_id:
        _refuse(type_, seq, f"toolCallId {block.get('toolCallId')!r} is not callId {call_id!r}")


def _check_attempt(data: Json, seq: int) -> None:
    type_ = "assistant/attempt"
    if not isinstance(data, dict):
        raise SettlementError(f"{type_} data is not an object", seq=seq)
    _check_settlement(type_, data, seq)


def _check_settlement(type_: str, data: Mapping[str, Json], seq: int) -> None:
    for name in ("turn", "step"):
        if natural(data.get(name)) is None:
            raise SettlementError(
                f"{type_}: {name} {data.get(name)!r} is not a whole number from 0", seq=seq
            )
    if not isinstance(data.get("stream"), list):
        raise SettlementError(f"{type_}: stream is not a list", seq=seq)


def check_message(message: Json, role: str | None = None) -> str | None:
    """Return what keeps a value from being a message, None if nothing does (R25 to R28).

    Args:
        role: the role that it must have; any of the three if None.
    """
    if not isinstance(message, dict):
        return "it is not an object"
    if not _is_name(message.get("id")):
        return "id is not a text of at least one character"
    if message.get("role") not in ((role,) if role else ("system", "user", "assistant")):
        return f"role {message.get('role')!r} is not {role or 'system, user or assistant'}"
    source = message.get("source")
    if not isinstance(source, dict):
        return "source is not an object"
    if not isinstance(message.get("content"), list):
        return "content is not a list"
    if not _is_name(source.get("kind")):
        return "source.kind is not a text of at least one character"
    return None


def _is_message(message: Json, role: str) -> bool:
    """Tell at once that `check_message` finds no fault; False says only that it has to be asked."""
    if type(message) is not dict:
        return False
    try:
        id_, its_role, source, content = _FIELDS(message)
        kind = source["kind"]
    except (KeyError, TypeError):
        return False
    return (
        type(id_) is type(kind) is str
        and id_ != ""
        and its_role == role
        and type(source) is dict
        and type(content) is list
        and kind != ""
    )


def _check_message(type_: str, message: Json, seq: int) -> Mapping[str, Json]:
    role = _ROLES[type_]
    if not _is_message(message, role):
        fault = check_message(message, role)
        if fault is not None:
            _refuse(type_, seq, fault)
    source: Mapping[str, Json] = message["source"]
    return source


def _inner(data: Json, type_: str, seq: int) -> Json:
    if not isinstance(data, dict):
        _refuse(type_, seq, "data is not an object")
    return data.get("message")


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and value != ""


def _refuse(type_: str, seq: int, reason: str) -> NoReturn:
    raise MessageShapeError(f"{type_} at seq {seq}: {reason}", seq=seq)


_CHECKS: dict[str, Check] = {
    "request/header": _check_request_header,
    "system/message": _check_system_message,
    "user/message": _check_user_message,
    "assistant/message": _check_assistant_message,
    "tool/result": _check_tool_result,
    "assistant/attempt": _check_attempt,
}
