"""Tool-call ids of other providers (field report M5)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.routes.limits import ToolIds
from everfold.routes.tool_ids import WireIds

RULES = {
    "pattern": (ToolIds(max_length=64), re.compile(r"[a-zA-Z0-9_-]{1,64}")),
    "forty": (ToolIds(max_length=40), re.compile(r"[a-zA-Z0-9_-]{1,40}")),
    "nine": (
        ToolIds(alphabet="a-zA-Z0-9", max_length=9, exact_length=9),
        re.compile(r"[a-zA-Z0-9]{9}"),
    ),
}
FOREIGN = [
    "call.0",
    "call:0",
    "call_0",
    "x" * 70,
    "x" * 64 + "y" * 6,
    "呼び出し",
    "functions.Bash:0",
]


def given_ids(rule: ToolIds, originals: list[str]) -> list[str]:
    ids = WireIds(rule)
    return [ids.give(original) for original in originals]


@pytest.mark.parametrize("name", RULES)
def test_foreign_ids_become_different_ids_that_conform_m5(name: str) -> None:
    rule, form = RULES[name]

    got = given_ids(rule, FOREIGN)

    assert all(form.fullmatch(id_) for id_ in got)
    assert len(set(got)) == len(FOREIGN)


@pytest.mark.parametrize(("name", "original"), [("pattern", "toolu_01-A"), ("nine", "aB3dE6gH9")])
def test_an_id_that_conforms_is_unchanged_m5(name: str, original: str) -> None:
    assert given_ids(RULES[name][0], [original]) == [original]


@given(st.lists(st.text(max_size=80), max_size=30), st.sampled_from(sorted(RULES)))
def test_ids_are_unique_conform_and_do_not_depend_on_what_follows(
    originals: list[str], name: str
) -> None:
    rule, form = RULES[name]

    got = given_ids(rule, originals)

    assert len(set(got)) == len(got)
    assert all(form.fullmatch(id_) for id_ in got)
    for length in range(len(originals)):
        assert given_ids(rule, originals[:length]) == got[:length]


def test_an_id_that_equals_a_derived_one_gets_another() -> None:
    rule = RULES["nine"][0]
    derived = given_ids(rule, ["call.0"])[0]

    first, second = given_ids(rule, ["call.0", derived])

    assert first == derived != second
