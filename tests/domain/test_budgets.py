"""How many images a route's budget asks to omit: group Q and V7."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.budgets import (
    BudgetError,
    ImageBudget,
    UnavoidableExcessError,
    required_beside,
    required_offload,
)
from everfold.llm.images import retained_lengths
from tests.domain.kit import image, text

MIB = 2**20


@pytest.mark.parametrize(
    ("count", "omitted"), [(128, 0), (129, 65), (191, 65), (192, 65), (193, 129), (256, 129)]
)
def test_the_excess_goes_in_whole_byte_quanta_r242_r244_r245(count: int, omitted: int) -> None:
    budget = ImageBudget(max_bytes=128 * MIB, byte_quantum=64 * MIB)

    assert required_offload([MIB] * count, budget) == omitted


@pytest.mark.parametrize(
    ("count", "omitted"), [(600, 0), (601, 20), (620, 20), (621, 40), (640, 40)]
)
def test_the_excess_goes_in_whole_count_quanta_r242(count: int, omitted: int) -> None:
    budget = ImageBudget(max_images=600, count_quantum=20)

    assert required_offload([1] * count, budget) == omitted


@pytest.mark.parametrize(
    ("lengths", "limit", "omitted"),
    [([5, 5], 10, 0), ([5, 5], 9, 1), ([5, 5], 5, 1), ([5, 5], 4, 2), ([5, 5], 0, 2), ([], 0, 0)],
)
def test_with_a_quantum_of_1_the_goal_is_met_exactly_r241_r244(
    lengths: list[int], limit: int, omitted: int
) -> None:
    assert required_offload(lengths, ImageBudget(max_bytes=limit)) == omitted


def test_the_oldest_go_first_until_both_goals_are_met_r243() -> None:
    lengths = [1, 1, 100, 1]

    assert required_offload(lengths, ImageBudget(max_bytes=3)) == 3
    assert required_offload(lengths, ImageBudget(max_images=3)) == 1
    assert required_offload(lengths, ImageBudget(max_bytes=102, max_images=2)) == 2
    assert required_offload(lengths, ImageBudget(max_bytes=3, max_images=3)) == 3


@pytest.mark.parametrize(
    ("raw", "encoded"), [(0, 0), (1, 4), (2, 4), (3, 4), (4, 8), (MIB, 1398104)]
)
def test_base64_rounds_each_image_up_r240(raw: int, encoded: int) -> None:
    assert ImageBudget("base64").length(raw) == encoded
    assert ImageBudget("raw").length(raw) == raw
    assert required_offload([raw], ImageBudget("base64", max_bytes=encoded)) == 0
    if raw:
        assert required_offload([raw], ImageBudget("base64", max_bytes=encoded - 1)) == 1


def test_without_limits_nothing_goes_r249() -> None:
    assert required_offload([10**12] * 100, ImageBudget(byte_quantum=5, count_quantum=5)) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"representation": "url"},
        {"max_bytes": -1},
        {"max_images": -1},
        {"byte_quantum": 0},
        {"count_quantum": 0},
    ],
)
def test_a_budget_without_sense_is_refused_r250(fields: dict[str, Any]) -> None:
    with pytest.raises(BudgetError):
        ImageBudget(**fields)


budgets = st.builds(
    ImageBudget,
    st.sampled_from(("raw", "base64")),
    st.none() | st.integers(0, 300),
    st.none() | st.integers(0, 12),
    st.integers(1, 100),
    st.integers(1, 5),
)
lengths_of_images = st.lists(st.integers(0, 60), max_size=16)


@given(lengths_of_images, budgets)
def test_what_stays_is_within_both_limits_or_nothing_stays(
    lengths: list[int], budget: ImageBudget
) -> None:
    count = required_offload(lengths, budget)

    assert 0 <= count <= len(lengths)
    left = [budget.length(length) for length in lengths[count:]]
    if left:
        assert budget.max_bytes is None or sum(left) <= budget.max_bytes
        assert budget.max_images is None or len(left) <= budget.max_images


@given(lengths_of_images, budgets)
def test_after_the_omission_nothing_more_goes(lengths: list[int], budget: ImageBudget) -> None:
    count = required_offload(lengths, budget)

    assert required_offload(lengths[count:], budget) == 0


@given(lengths_of_images, st.none() | st.integers(0, 300), st.none() | st.integers(0, 12))
def test_with_quanta_of_1_no_fewer_would_do(
    lengths: list[int], max_bytes: int | None, max_images: int | None
) -> None:
    budget = ImageBudget(max_bytes=max_bytes, max_images=max_images)
    count = required_offload(lengths, budget)

    if count:
        left = lengths[count - 1 :]
        over_bytes = max_bytes is not None and sum(left) > max_bytes
        assert over_bytes or (max_images is not None and len(left) > max_images)


def test_what_the_model_made_counts_and_stays_v7_r247() -> None:
    budget = ImageBudget(max_bytes=10)

    assert required_beside([4, 4], [2], budget) == 0
    assert required_beside([4, 4], [3], budget) == 1
    assert required_beside([4, 4], [10], budget) == 2


@pytest.mark.parametrize(
    "budget", [ImageBudget(max_bytes=5), ImageBudget(max_images=1), ImageBudget("base64", 7)]
)
def test_what_no_omission_removes_is_said_at_once_v7(budget: ImageBudget) -> None:
    with pytest.raises(UnavoidableExcessError, match="omitting others cannot help"):
        required_beside([1, 1, 1], [3, 3], budget)


def test_omitted_images_count_neither_in_bytes_nor_in_number_r239_r248() -> None:
    result = {"type": "tool-result", "content": [image(2), image(3, offloaded=True)]}
    contents = [
        [text("x"), image(1, offloaded=True)],
        [image(4), result],
        [image(5, offloaded=False)],
    ]

    lengths = retained_lengths(contents, lambda block: int(block["attachment"]["bytes"]))

    assert lengths == [1004, 1002, 1005]
