"""Repair of what models, tools and users send: text that is not valid Unicode, values that JSON cannot hold.

The log refuses such values (R138). At the edge they are mended instead, and the places are
handed on, so that the repair can be written into the log.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REPLACEMENT = "\ufffd"
MAX_DEPTH = 100
"""Deeper values are cut here; the log takes 200 levels, the envelope around a value needs some."""

_MAX_WHOLE = 2**53 - 1
_PAIR = re.compile("[\\ud800-\\udbff][\\udc00-\\udfff]")
_LONE = re.compile("[\\ud800-\\udfff]")
_HIGH = ("\ud800", "\udbff")


@dataclass(frozen=True, slots=True)
class Repair:
    """One place that was mended; `path` is as in `content[0].text`."""

    path: str
    reason: str

    def to_json(self) -> dict[str, str]:
        """Return the place as it is logged."""
        return {"path": self.path, "reason": self.reason}


def well_formed(text: str) -> tuple[str, int]:
    """Return valid Unicode, and how many lone surrogates were replaced by U+FFFD.

    Two halves that stand side by side are joined to the character that they mean; that counts as
    no replacement.
    """
    if text.isascii():
        return text, 0
    try:
        text.encode()
    except UnicodeEncodeError:
        return _LONE.subn(REPLACEMENT, _PAIR.sub(_join, text))
    return text, 0


def ends_in_half(text: str) -> bool:
    """Tell whether the last character is the first half of a pair that may still come."""
    return bool(text) and _HIGH[0] <= text[-1] <= _HIGH[1]


def _join(pair: "re.Match[str]") -> str:
    return pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def mended(value: Any, path: str = "") -> tuple[Any, tuple[Repair, ...]]:
    """Return a copy of `value` that JSON holds without loss, and the places that were mended.

    Text is made valid Unicode; NaN and infinities become null; -0 becomes 0; numbers beyond 2^53
    become their text; keys become text; tuples become lists; anything else becomes its `str`.
    """
    mender = _Mender()
    return mender.value(value, path, 0), tuple(mender.repairs)


@dataclass(slots=True)
class _Mender:
    repairs: list[Repair] = field(default_factory=list)

    def value(self, value: Any, path: str, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, (int, float)):
            return self._number(value, path)
        if depth >= MAX_DEPTH:
            return self._note(path, f"nested deeper than {MAX_DEPTH} levels", "…")
        if isinstance(value, Mapping):
            return self._mapping(value, path, depth)
        if isinstance(value, (list, tuple)):
            return [
                self.value(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)
            ]
        kind = type(value).__name__
        return self._note(path, f"a {kind}, which JSON cannot hold", well_formed(str(value))[0])

    def _mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            name = self._text(str(key), f"{path} (key)" if path else "(key)")
            result[name] = self.value(item, f"{path}.{name}" if path else name, depth + 1)
        return result

    def _text(self, text: str, path: str) -> str:
        clean, count = well_formed(text)
        if count:
            self._note(path, f"{count} lone surrogate(s)", None)
        return clean

    def _number(self, number: float, path: str) -> Any:
        if isinstance(number, int):
            whole = int(number)
            if abs(whole) > _MAX_WHOLE:
                return self._note(path, "a whole number beyond 2^53", str(whole))
            return whole
        if not math.isfinite(number):
            return self._note(path, f"the number {number}", None)
        if abs(number) > _MAX_WHOLE:
            return self._note(path, "a number beyond 2^53", repr(number))
        if number == 0 and math.copysign(1.0, number) < 0:
            return self._note(path, "minus zero", 0)
        return number

    def _note(self, path: str, reason: str, instead: Any) -> Any:
        self.repairs.append(Repair(path, reason))
        return instead
