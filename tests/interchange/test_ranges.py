"""Range coding of cited sources (R336 to R338)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.interchange.ranges import decode_ranges, encode_ranges
from everfold.session.errors import SourceRefsError
from everfold.session.frozen import Json
from tests.interchange.files import coded

CODED: list[tuple[list[Json], list[Json]]] = [
    ([3, 8, 20, 21, 22, 23, 38, 39], [3, 8, [20, 23], 38, 39]),
    ([1, 2], [1, 2]),
    ([1, 2, 3], [[1, 3]]),
    ([0, 1, 2, 4, 5, 6], [[0, 2], [4, 6]]),
    ([5], [5]),
    ([3, 2, 1], [3, 2, 1]),
    ([1, 2, 3, 3], [1, 2, 3, 3]),
    ([], []),
]


@pytest.mark.parametrize(("seqs", "form"), CODED)
def test_runs_of_three_or_more_become_pairs(seqs: list[Json], form: list[Json]) -> None:
    assert encode_ranges(seqs) == form


@pytest.mark.parametrize(("seqs", "form"), CODED)
def test_pairs_become_runs(seqs: list[Json], form: list[Json]) -> None:
    assert decode_ranges(form, 100) == seqs


def test_a_pair_shorter_than_three_is_understood() -> None:
    assert decode_ranges([[3, 4], [7, 7]], 8) == [3, 4, 7]


def test_a_range_over_all_memory_is_not_expanded() -> None:
    with pytest.raises(SourceRefsError, match="source 9007199254740991 of the event at seq 9"):
        decode_ranges([[0, 2**53 - 1]], 9)


@given(st.lists(st.integers(0, 60), max_size=40))
def test_any_list_comes_back(seqs: list[int]) -> None:
    assert decode_ranges(encode_ranges(seqs), 61) == seqs


@given(st.sets(st.integers(0, 60)).map(sorted))
def test_the_coded_form_is_the_reckoned_one(seqs: list[int]) -> None:
    assert encode_ranges(seqs) == coded(seqs)
