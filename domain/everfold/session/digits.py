"""Lists of whole numbers from 0 as short text that JSON writes as it is.

The digits are the 92 characters from `!` to `~` without `"` and the backslash. A number is written
in base 46, its lowest digit first, and every digit but the last one is raised by 46: so numbers
below 46 take one character, those below 2116 two.
"""

from collections.abc import Iterable

_BASE = 46
_DIGITS = "".join(chr(code) for code in range(ord("!"), ord("~") + 1) if chr(code) not in '"\\')
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}


def encode_numbers(numbers: Iterable[int]) -> str:
    """Return the text that holds these numbers in this order; each is at least 0."""
    return "".join(map(_encoded, numbers))


def _encoded(number: int) -> str:
    digits = ""
    while number >= _BASE:
        number, digit = divmod(number, _BASE)
        digits += _DIGITS[_BASE + digit]
    return digits + _DIGITS[number]


def decode_numbers(text: str) -> list[int]:
    """Return the numbers that a text holds.

    Raises:
        ValueError: a character is no digit, or the last number breaks off.
    """
    numbers: list[int] = []
    number, weight = 0, 1
    for digit in text:
        value = _VALUES.get(digit)
        if value is None:
            raise ValueError(f"{digit!r} is no digit")
        if value >= _BASE:
            number += (value - _BASE) * weight
            weight *= _BASE
            continue
        numbers.append(number + value * weight)
        number, weight = 0, 1
    if weight > 1:
        raise ValueError("the last number breaks off")
    return numbers
