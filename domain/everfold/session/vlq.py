"""Lists of whole numbers as short text: Base64 VLQ, the coding of source maps.

A number's lowest bit is its sign; from the lowest on, five bits make a digit of Base64, and all
digits of a number but its last one are 32 higher. So -15 to 15 take one character, -511 to 511 two.
"""

from collections.abc import Iterable

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_GOES_ON = 32


def encode_numbers(numbers: Iterable[int]) -> str:
    """Return the text that holds these numbers in this order."""
    return "".join(map(_encoded, numbers))


def _encoded(number: int) -> str:
    rest = abs(number) << 1 | (number < 0)
    digits = ""
    while rest >= _GOES_ON:
        digits += _DIGITS[rest % _GOES_ON | _GOES_ON]
        rest //= _GOES_ON
    return digits + _DIGITS[rest]


def decode_numbers(text: str) -> list[int]:
    """Return the numbers that a text holds.

    Raises:
        ValueError: a character is no digit of Base64, or the last number breaks off.
    """
    numbers: list[int] = []
    rest = shift = 0
    for digit in text:
        value = _VALUES.get(digit)
        if value is None:
            raise ValueError(f"{digit!r} is no digit of Base64")
        rest |= value % _GOES_ON << shift
        if value >= _GOES_ON:
            shift += 5
            continue
        numbers.append(-(rest >> 1) if rest & 1 else rest >> 1)
        rest = shift = 0
    if shift:
        raise ValueError("the last number breaks off")
    return numbers
