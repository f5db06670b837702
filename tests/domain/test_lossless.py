"""JSON without loss: R138 to R140, and the refusals that issue 2 lists for bad input."""

import datetime
import enum
import json
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given

from everfold.session.errors import LosslessError
from everfold.session.frozen import freeze, json_equal
from everfold.session.lossless import MAX_DEPTH, decode, encode, natural, whole
from tests.domain.kit import nested
from tests.domain.logs import json_values

LIMIT = 2**53 - 1


class Whole(int):
    """An int of another class."""


class Name(str):
    """A str of another class."""


class Colour(enum.Enum):
    RED = "red"


def cycle() -> Any:
    """A list that contains itself."""
    value: list[Any] = []
    value.append({"again": value})
    return value


@given(json_values)
def test_what_is_encoded_reads_back_equal(value: Any) -> None:
    data, copy = encode(value)

    assert json_equal(copy, value)
    assert json_equal(decode(data), value)


@given(json_values)
def test_any_json_reader_reads_the_stored_bytes(value: Any) -> None:
    data, _copy = encode(value)

    assert json_equal(json.loads(data), value)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (float("nan"), "data", "is nan"),
        ({"a": [1, float("nan")]}, "data.a[1]", "is nan"),
        ({"a": float("inf")}, "data.a", "is inf"),
        ([float("-inf")], "data[0]", "is -inf"),
        (-0.0, "data", "is -0"),
        ({"a": {"b": -0.0}}, "data.a.b", "is -0"),
        (2**53, "data", "beyond 2^53-1"),
        ([2**53 + 1], "data[0]", "beyond 2^53-1"),
        ([-(2**53)], "data[0]", "beyond 2^53-1"),
        ([2**63], "data[0]", "beyond 2^53-1"),
        ([2**64], "data[0]", "beyond 2^53-1"),
        (float(2**53), "data", "beyond 2^53-1"),
        ([float(2**53)], "data[0]", "beyond 2^53-1"),
        ({"a": -1e16}, "data.a", "beyond 2^53-1"),
        (1e300, "data", "beyond 2^53-1"),
        ({"a": 1.5e300}, "data.a", "beyond 2^53-1"),
        ({"a": [0.5, -1e300]}, "data.a[1]", "beyond 2^53-1"),
        ("\ud800", "data", "U+D800"),
        ({"a": ["x", "ab\udfff"]}, "data.a[1]", "character 2 is a lone surrogate U+DFFF"),
        ({"a": {"\udc00": 1}}, r"data.a: the key '\udc00'", "U+DC00"),
        ({1: 2}, "data", "has the key 1, which is not text"),
        ({"a": {None: 2}}, "data.a", "has the key None"),
        ((1, 2), "data", "is a tuple"),
        ({"a": [(1,)]}, "data.a[0]", "is a tuple"),
        ({1, 2}, "data", "is a set"),
        ({"a": b"x"}, "data.a", "is a bytes"),
        ({"a": datetime.datetime(2026, 1, 1)}, "data.a", "is a datetime"),
        ({"a": datetime.date(2026, 1, 1)}, "data.a", "is a date"),
        ([Colour.RED], "data[0]", "is a Colour"),
        ([object()], "data[0]", "is an object"),
        ([len], "data[0]", "is a builtin_function_or_method"),
        ([1j], "data[0]", "is a complex"),
    ],
)
def test_a_value_that_would_be_lost_is_refused_by_name(value: Any, path: str, reason: str) -> None:
    """R138."""
    with pytest.raises(LosslessError) as caught:
        encode(value)

    assert caught.value.path == path
    assert reason in str(caught.value)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("value", [LIMIT, float(LIMIT), 2.0**53 - 1, 1e15, 12345678901234.5])
def test_a_number_up_to_the_limit_is_kept(value: float, sign: int) -> None:
    data, copy = encode([sign * value])

    assert copy == [sign * value]
    assert type(copy[0]) is type(value)
    assert decode(data) == [sign * value]


def test_1e400_in_json_text_is_refused() -> None:
    value = json.loads('{"a": 1e400}')

    with pytest.raises(LosslessError, match=r"data\.a is inf"):
        encode(value)


def test_an_integer_too_long_to_print_is_refused() -> None:
    with pytest.raises(LosslessError, match=r"data\[0\] .*beyond 2\^53-1"):
        encode([10**5000])


@pytest.mark.parametrize("value", [1e-7, 1e-300, 5e-324, "1e300", "-0.0", ":9007199254740993"])
def test_a_value_that_only_looks_suspicious_is_kept(value: Any) -> None:
    _data, copy = encode({"a": value})

    assert copy == {"a": value}


@pytest.mark.parametrize("value", ["\x00", "a\x00b", "\x1b[2J", "\u2028", "\U0001f600", "\uffff"])
def test_any_valid_unicode_is_kept(value: str) -> None:
    _data, copy = encode({value: value})

    assert copy == {value: value}


def test_nesting_to_the_limit_is_kept() -> None:
    _data, copy = encode(nested(MAX_DEPTH))

    assert copy == nested(MAX_DEPTH)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 253, 254, 255, 1000, 100_000])
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"a": [value]}])
def test_nesting_beyond_the_limit_is_refused(depth: int, wrap: Callable[[Any], Any]) -> None:
    value = wrap(nested(depth))

    with pytest.raises(LosslessError, match="is nested deeper than 200 levels"):
        encode(value)


def test_a_deep_object_is_refused() -> None:
    value: Any = {}
    for _ in range(MAX_DEPTH):
        value = {"a": value}

    with pytest.raises(LosslessError, match="is nested deeper than 200 levels"):
        encode(value)


def test_a_refusal_of_deep_nesting_needs_no_more_stack_than_there_is() -> None:
    before = sys.getrecursionlimit()

    with pytest.raises(LosslessError):
        encode(nested(100_000))

    assert sys.getrecursionlimit() == before


def test_a_value_with_many_brackets_side_by_side_is_kept() -> None:
    value: list[Any] = [[], {}] * 500

    _data, copy = encode(value)

    assert copy == value


def test_a_cycle_is_refused() -> None:
    with pytest.raises(LosslessError, match=r"data\[0\]\.again contains itself"):
        encode(cycle())


def test_one_object_in_two_places_is_no_cycle() -> None:
    """R139."""
    shared = {"a": [1]}

    _data, copy = encode([shared, {"b": shared}])

    assert copy == [{"a": [1]}, {"b": {"a": [1]}}]


def test_the_copy_shares_nothing_with_the_value() -> None:
    """R140."""
    value = {"a": [1]}
    data, copy = encode(value)

    value["a"].append(2)

    assert copy == {"a": [1]}
    assert decode(data) == {"a": [1]}


def test_subclasses_of_json_types_are_stored_as_plain_ones() -> None:
    _data, copy = encode([Whole(3), Name("x"), OrderedDict(a=1), freeze({"b": [2]})])

    assert copy == [3, "x", {"a": 1}, {"b": [2]}]
    assert [type(item) for item in copy] == [int, str, dict, dict]


def test_key_order_is_kept() -> None:
    data, _copy = encode({"b": 1, "a": 2})

    assert data == b'{"b":1,"a":2}'


def test_bytes_that_are_not_json_are_refused() -> None:
    with pytest.raises(LosslessError, match="the stored bytes are not JSON"):
        decode(b'{"a":')


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0),
        (-1, -1),
        (3.0, 3),
        (LIMIT, LIMIT),
        (-LIMIT, -LIMIT),
        (1e2, 100),
        (float(LIMIT), LIMIT),
    ],
)
def test_whole_numbers_are_recognised_in_any_spelling(value: object, number: int) -> None:
    """R5."""
    assert whole(value) == number
    assert type(whole(value)) is int


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        0.5,
        True,
        False,
        None,
        "1",
        [],
        LIMIT + 1,
        2.0**53,
        float("nan"),
        float("inf"),
        10**400,
    ],
)
def test_other_values_are_not_whole(value: object) -> None:
    """R5: -0, fractions, text and booleans are refused."""
    assert whole(value) is None


@pytest.mark.parametrize(("value", "number"), [(0, 0), (2.0, 2), (-1, None), (-1.0, None)])
def test_natural_numbers_start_at_0(value: object, number: int | None) -> None:
    assert natural(value) == number


def test_the_stored_form_is_compact_utf8() -> None:
    data, _copy = encode({"é": [1, "\u2028"]})

    assert data == orjson.dumps({"é": [1, "\u2028"]})
    assert data == '{"é":[1,"\u2028"]}'.encode()
