"""The events that are measured: payloads of about 600 bytes, as agents write them."""

from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json

PAYLOAD_BYTES = 600
_TEXT = "the quick harbour pilot reads the tide tables twice before the ferry leaves "


def user_message(number: int) -> AppendEvent:
    """Return a user message of about 600 bytes."""
    data = {
        "id": f"message-{number:08}",
        "role": "user",
        "content": [{"type": "text", "text": _fill(number, 460)}],
        "source": {"kind": "user"},
    }
    return message("user/message", data)


def assistant_message(number: int) -> AppendEvent:
    """Return an assistant message of about 600 bytes."""
    inner = {
        "id": f"answer-{number:08}",
        "role": "assistant",
        "content": [{"type": "text", "text": _fill(number, 400)}],
        "source": {"kind": "model", "provider": "bench", "model": "bench-1"},
    }
    return message("assistant/message", {"turn": 1, "step": 1, "message": inner, "stream": []})


def tool_result(number: int) -> AppendEvent:
    """Return a tool result of about 600 bytes."""
    call = f"call-{number:08}"
    block = {
        "type": "tool-result",
        "toolCallId": call,
        "content": [{"type": "text", "text": _fill(number, 330)}],
    }
    data = {
        "turn": 1,
        "step": 1,
        "message": {
            "id": f"result-{number:08}",
            "role": "user",
            "content": [block],
            "source": {"kind": "tool", "callId": call},
        },
    }
    return message("tool/result", data)


def log_only(number: int) -> AppendEvent:
    """Return a log-only event of about 600 bytes."""
    data: Json = {"turn": 1, "step": 1, "callId": f"call-{number:08}", "name": "read_file"}
    return AppendEvent("tool/call", {**data, "arguments": _fill(number, 520)})


def events(count: int, start: int = 0) -> list[AppendEvent]:
    """Return a mix: of three events two make messages, one does not."""
    kinds = (user_message, log_only, tool_result)
    return [kinds[number % 3](number) for number in range(start, start + count)]


def _fill(number: int, size: int) -> str:
    return f"{number:08} {_TEXT * (size // len(_TEXT) + 1)}"[:size]
