"""The structural prices of texts, blocks, messages and tools in tokens (R298 to R301).

A quarter of a token per UTF-16 unit, and four tokens of overhead: rough, but the same everywhere
and for ever. Lengths of JSON are those of JavaScript's `JSON.stringify`.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson

OVERHEAD = 4
"""Tokens that a block, a message, or a list of tools costs besides its text."""

_UNITS_PER_TOKEN = 4
_SMALLEST_PLAIN = 1e-6


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units, as JavaScript counts it (R300)."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def json_length(value: Any) -> int:
    """Return the length in UTF-16 units of the compact JSON text that JavaScript writes."""
    extra: list[int] = []
    plain = _without_floats(value, extra)
    return utf16_length(orjson.dumps(plain).decode()) + sum(extra)


def text_price(text: str) -> int:
    """Return the price of a bare text, without overhead."""
    return _tokens(utf16_length(text))


def block_price(block: Any) -> int:
    """Return the price of a content block; an image's does not depend on its mark (R298, R301)."""
    if not isinstance(block, dict):
        return _json_price(block)
    match block.get("type"):
        case "text" | "reasoning" if isinstance(block.get("text"), str):
            return text_price(block["text"]) + OVERHEAD
        case "tool-call" if _is_call(block):
            return text_price(block["name"]) + text_price(block["arguments"]) + OVERHEAD
        case "tool-result" if isinstance(block.get("content"), list):
            return content_price(block["content"]) + OVERHEAD
        case "image":
            return image_price(block)
        case _:
            return _json_price(block)


def image_price(block: Mapping[str, Any]) -> int:
    """Return the fixed price of an image block: that of its JSON without the mark (R301)."""
    return _json_price({name: value for name, value in block.items() if name != "offloaded"})


def content_price(content: Iterable[Any]) -> int:
    """Return the price of content blocks together."""
    return sum(map(block_price, content))


def message_price(message: Mapping[str, Any]) -> int:
    """Return the price of a message (R298, R299).

    A system message costs its text and one overhead. A system or assistant message with empty
    content is not sent (R82) and costs nothing.
    """
    content = message.get("content")
    blocks: Sequence[Any] = content if isinstance(content, list) else ()
    role = message.get("role")
    if not blocks and role in ("system", "assistant"):
        return 0
    if role == "system":
        return _tokens(sum(map(_text_length, blocks))) + OVERHEAD
    return content_price(blocks) + OVERHEAD


def tools_price(tools: Sequence[Any] | None) -> int:
    """Return the price of the tools of a request, 0 for none (R300)."""
    return _json_price(tools) if tools else 0


def _json_price(value: Any) -> int:
    return _tokens(json_length(value)) + OVERHEAD


def _tokens(units: int) -> int:
    return -(-units // _UNITS_PER_TOKEN)


def _is_call(block: Mapping[str, Any]) -> bool:
    return isinstance(block.get("name"), str) and isinstance(block.get("arguments"), str)


def _text_length(block: Any) -> int:
    text = block.get("text") if isinstance(block, dict) else None
    return utf16_length(text) if isinstance(text, str) else 0


def _without_floats(value: Any, extra: list[int]) -> Any:
    """Return a value in which 0 stands for each float; what its text is longer goes to `extra`."""
    if isinstance(value, dict):
        return {key: _without_floats(item, extra) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_floats(item, extra) for item in value]
    if isinstance(value, float):
        extra.append(len(_js_number(value)) - 1)
        return 0
    return value


def _js_number(number: float) -> str:
    if number.is_integer():
        return str(int(number))
    exact = Decimal(repr(number))
    if abs(number) >= _SMALLEST_PLAIN:
        return f"{exact:f}"
    mantissa, _, exponent = f"{exact:e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
