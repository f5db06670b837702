"""JSON as JavaScript's `JSON.stringify` writes it, byte for byte, key order as given."""

import re

import orjson

from everfold.session.frozen import Json
from everfold.session.lossless import MAX_WHOLE

# A number with a fraction or an exponent, or text that looks like one: then the slow way is taken.
_FRACTION = re.compile(rb"[:,\[]-?[0-9]+[.e]")
_LAST_PLAIN_EXPONENT = 21
_FIRST_PLAIN_EXPONENT = -6


def stringify(value: Json) -> bytes:
    """Return the compact JSON of a value that the session's doors let in."""
    data = orjson.dumps(value)
    if _FRACTION.search(data) is None:
        return data
    return orjson.dumps(_spelled(value))


def number_text(value: float) -> str:
    """Return a finite number as JavaScript spells it: `1`, `0.000001`, `1e-7` (never `1.0`, `1e-06`)."""
    if value == int(value) and abs(value) <= MAX_WHOLE:
        return str(int(value))
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # Where the decimal point stands, counted from the first digit that is not zero.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return sign + _placed(digits.rstrip("0"), point)


def _placed(digits: str, point: int) -> str:
    if len(digits) <= point <= _LAST_PLAIN_EXPONENT:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _LAST_PLAIN_EXPONENT:
        return f"{digits[:point]}.{digits[point:]}"
    if _FIRST_PLAIN_EXPONENT < point <= 0:
        return f"0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{tail}e{point - 1:+d}"


def _spelled(value: Json) -> Json:
    if isinstance(value, float):
        return orjson.Fragment(number_text(value).encode())
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    return value
