"""Frozen values: what the log hands out is shared, so nobody can change it."""

import copy
import json
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given

from everfold.session.frozen import FrozenDict, FrozenList, freeze, json_equal, thaw
from tests.domain.logs import json_values

VALUE = {"a": [1, {"b": 2}], "c": {"d": [3]}}

DICT_CHANGES: list[Callable[[Any], Any]] = [
    lambda d: d.__setitem__("a", 1),
    lambda d: d.__delitem__("a"),
    lambda d: d.clear(),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.setdefault("z", 1),
    lambda d: d.update(a=1),
    lambda d: d.__ior__({"z": 1}),
    lambda d: setattr(d, "x", 1),
]
LIST_CHANGES: list[Callable[[Any], Any]] = [
    lambda x: x.__setitem__(0, 1),
    lambda x: x.__setitem__(slice(0, 1), []),
    lambda x: x.__delitem__(0),
    lambda x: x.append(1),
    lambda x: x.extend([1]),
    lambda x: x.insert(0, 1),
    lambda x: x.pop(),
    lambda x: x.remove(1),
    lambda x: x.clear(),
    lambda x: x.reverse(),
    lambda x: x.sort(),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
    lambda x: setattr(x, "x", 1),
]


@pytest.mark.parametrize("change", DICT_CHANGES)
@pytest.mark.parametrize("part", [lambda v: v, lambda v: v["c"], lambda v: v["a"][1]])
def test_an_object_refuses_change_at_any_depth(change: Any, part: Any) -> None:
    frozen = freeze(VALUE)

    with pytest.raises((TypeError, AttributeError)):
        change(part(frozen))

    assert frozen == VALUE


@pytest.mark.parametrize("change", LIST_CHANGES)
@pytest.mark.parametrize("part", [lambda v: v["a"], lambda v: v["c"]["d"]])
def test_a_list_refuses_change_at_any_depth(change: Any, part: Any) -> None:
    frozen = freeze(VALUE)

    with pytest.raises((TypeError, AttributeError)):
        change(part(frozen))

    assert frozen == VALUE


def test_the_refusal_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="copy it first"):
        freeze({})["a"] = 1


@given(json_values)
def test_a_frozen_value_equals_the_plain_one_both_ways(value: Any) -> None:
    frozen = freeze(value)

    assert frozen == value
    assert value == frozen
    assert json_equal(frozen, value)


@given(json_values)
def test_freezing_and_thawing_gives_an_equal_plain_value(value: Any) -> None:
    plain = thaw(freeze(value))

    assert json_equal(plain, value)
    assert _types(plain) <= {dict, list, str, int, float, bool, type(None)}


def _types(value: Any) -> set[type]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {type(value)}.union(*(_types(item) for item in inner))


@given(json_values)
def test_frozen_values_can_be_written_as_json(value: Any) -> None:
    frozen = freeze(value)

    assert json.dumps(frozen) == json.dumps(value)
    assert orjson.dumps(frozen) == orjson.dumps(value)


@given(json_values)
def test_frozen_values_survive_pickling_frozen(value: Any) -> None:
    again = pickle.loads(pickle.dumps(freeze(value)))

    assert json_equal(again, value)
    assert type(again) is type(freeze(value))


def test_copies_of_a_frozen_value_are_itself() -> None:
    frozen = freeze(VALUE)

    assert copy.copy(frozen) is frozen
    assert copy.deepcopy(frozen) is frozen
    assert copy.copy(frozen["a"]) is frozen["a"]
    assert copy.deepcopy(frozen["a"]) is frozen["a"]


def test_the_copy_method_gives_a_plain_shallow_copy() -> None:
    frozen = freeze(VALUE)

    plain, items = frozen.copy(), frozen["a"].copy()
    plain["z"] = 1
    items.append(2)

    assert (type(plain), type(items)) == (dict, list)
    assert frozen == VALUE


def test_freezing_does_not_touch_the_value_given() -> None:
    value: dict[str, Any] = {"a": [1]}
    frozen = freeze(value)

    value["a"].append(2)

    assert frozen == {"a": [1]}


def test_parts_that_are_frozen_already_are_kept() -> None:
    inner = freeze({"b": [1]})

    outer = freeze({"a": inner, "c": [inner["b"]]})

    assert outer["a"] is inner
    assert outer["c"][0] is inner["b"]
    assert freeze(outer) is outer


def test_subclasses_of_dict_and_list_are_frozen_too() -> None:
    class Items(list[Any]):
        """A list of another class."""

    frozen = freeze({"a": OrderedDict(b=Items([OrderedDict()]))})

    assert type(frozen["a"]) is FrozenDict
    assert type(frozen["a"]["b"]) is FrozenList
    assert type(frozen["a"]["b"][0]) is FrozenDict


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (1, 1.0),
        ([1, "x", None], [1.0, "x", None]),
        (True, True),
        (freeze({"a": [1]}), {"a": [1]}),
    ],
)
def test_equal_values_are_equal_r65(left: Any, right: Any) -> None:
    assert json_equal(left, right)
    assert json_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        (None, False),
        (None, 0),
        (1, "1"),
        ("", None),
        ([], {}),
        ([], None),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {}),
        ({"a": 1}, {"b": 1}),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ("1", 1),
    ],
)
def test_other_values_differ_r65(left: Any, right: Any) -> None:
    assert not json_equal(left, right)
    assert not json_equal(right, left)
