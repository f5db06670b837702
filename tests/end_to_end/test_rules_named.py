"""Every rule of the loop and its recoveries (groups N and P to V) is named by a test."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

GROUPS = {
    "N": range(187, 201),
    "P": range(228, 238),
    "Q": range(238, 255),
    "R": range(255, 261),
    "S": range(261, 271),
    "T": range(271, 291),
    "U": range(291, 298),
    "V": range(298, 312),
}
"""The rules by group, as behaviour is numbered; each can be observed, so none is left out."""

_FUNCTION = re.compile(r"def (test_\w+)")
_NAMED = re.compile(r"_r(\d{3})(?!\d)(?:_to_r(\d{3}))?")


def rules_in(name: str) -> set[int]:
    """Return the rules that the name of a test names, as `_r238` or `_r228_to_r232`."""
    return {
        rule
        for found in _NAMED.finditer(name)
        for rule in range(int(found[1]), int(found[2] or found[1]) + 1)
    }


def named_rules() -> set[int]:
    """Return every rule that a test's name names."""
    own = Path(__file__).name
    files = [file for file in TESTS.rglob("test_*.py") if file.name != own]
    names = [name for file in files for name in _FUNCTION.findall(file.read_text("utf-8"))]
    return {rule for name in names for rule in rules_in(name)}


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_every_rule_of_a_group_is_named_by_a_test(group: str) -> None:
    missing = set(GROUPS[group]) - named_rules()

    assert sorted(missing) == []


def test_names_are_read_with_their_ranges() -> None:
    assert rules_in("test_it_r228_to_r230_r240") == {228, 229, 230, 240}
    assert rules_in("test_pr_1234") == set()
