"""A growing sequence is cut like the list of its items, whatever others added to what they share."""

import threading
from collections.abc import Iterator
from contextlib import suppress

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


class Amid(list[int]):
    """Items that have something else done while they are taken, as a signal handler does."""

    def __init__(self, base: Growing[int]) -> None:
        super().__init__([2, 3])
        self.base = base
        self.others: list[Growing[int]] = []

    def __iter__(self) -> Iterator[int]:
        yield 2
        self.others.append(self.base.extended([7]))
        yield 3


def test_an_extension_amid_another_disturbs_neither() -> None:
    base = Growing([1])
    amid = Amid(base)

    longer = base.extended(amid)

    assert (list(base), list(longer), list(amid.others[0])) == ([1], [1, 2, 3], [1, 7])
    assert list(longer.extended([4])) == [1, 2, 3, 4]
    assert list(amid.others[0].extended([8])) == [1, 7, 8]


def test_an_extension_that_fails_leaves_the_sequence_as_it_was() -> None:
    base = Growing([1])

    class Broken(list[int]):
        def __iter__(self) -> Iterator[int]:
            yield 2
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        base.extended(Broken([2]))

    assert (list(base), list(base.extended([3]))) == ([1], [1, 3])


def test_threads_that_extend_the_same_sequence_each_get_their_own() -> None:
    base, found = Growing([0]), []

    def extend(number: int) -> None:
        value = base
        for _ in range(200):
            value = value.extended([number])
        found.append((number, list(value)))

    threads = [threading.Thread(target=extend, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(found) == [(number, [0, *[number] * 200]) for number in range(1, 9)]
