"""A growing sequence is cut like the list of its items, whatever others added to what they share."""

from hypothesis import given
from hypothesis import strategies as st

from everfold.session.growing import Growing

bounds = st.one_of(st.none(), st.integers(-8, 8))


@given(st.lists(st.integers(), max_size=5), bounds, bounds, st.sampled_from([None, 1, 2, -1, -2]))
def test_a_slice_is_that_of_a_list(
    items: list[int], start: int | None, stop: int | None, step: int | None
) -> None:
    short = Growing(items)
    short.extended([101, 102, 103])

    assert short[start:stop:step] == items[start:stop:step]
