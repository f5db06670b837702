"""Making text from logs safe to print: what could steer a terminal is shown as an escape (I7)."""

import re
import unicodedata

_LAYOUT = "\n\t"
_JOINERS = "\u200c\u200d"
"""Zero-width joiners: scripts and emoji need them, and they reorder nothing."""

_SUSPECT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\uffff\U000110bd-\U0010ffff]")
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Controls, formats (bidi overrides, tags), surrogates, private use, line separators."""

# In JSON these characters can only stand inside texts, where an escape means the same.
_RAW_IN_JSON = re.compile(
    r"[\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Return text whose control, format and bidi characters are escapes; newline and tab stay."""
    return _SUSPECT.sub(_escape, text)


def one_line(text: str, width: int | None = None) -> str:
    """Return text as one visible line, newlines and tabs as `\\n` and `\\t`.

    Args:
        width: most characters; longer text ends with an ellipsis.
    """
    if width is not None:
        text = text[: width + 1]
    line = visible(text.replace("\n", "\\n").replace("\t", "\\t"))
    return line if width is None or len(line) <= width else line[: max(0, width - 1)] + "…"


def visible_json(text: str) -> str:
    """Return JSON text with the same value and no raw character that could steer a terminal."""
    return _RAW_IN_JSON.sub(_json_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in _LAYOUT or character in _JOINERS:
        return character
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
