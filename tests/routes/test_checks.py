"""A route's own limits: what is asked to go is enough, at once, and never more than can go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.budgets import ImageBudget, required_offload
from everfold.llm.failure import FailureCode, LlmError
from everfold.routes.checks import check_body, check_images
from everfold.routes.counting import SentImage, for_budget, half, half_of_bytes, omittable, through
from everfold.routes.limits import RouteLimits

MIB = 2**20
IMAGES = st.lists(
    st.builds(
        lambda raw, edge, can_go: SentImage(raw, -(-raw // 3) * 4, edge, can_go),
        st.integers(1, 50),
        st.integers(1, 50),
        st.booleans(),
    ),
    max_size=12,
)
BUDGETS = st.builds(
    lambda base64, most_bytes, most, quantum: ImageBudget(
        "base64" if base64 else "raw", most_bytes, most, quantum, 1
    ),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 400)),
    st.one_of(st.none(), st.integers(0, 12)),
    st.integers(1, 40),
)
LIMITS = st.builds(
    lambda size, edge, many, many_edge: RouteLimits(
        max_image_bytes=size, max_edge=edge, many_images=many, many_images_edge=many_edge
    ),
    st.one_of(st.none(), st.integers(1, 70)),
    st.one_of(st.none(), st.integers(1, 50)),
    st.one_of(st.none(), st.integers(0, 12)),
    st.one_of(st.none(), st.integers(1, 50)),
)


def image(raw: int, edge: int = 1, can_go: bool = True) -> SentImage:
    return SentImage(raw, -(-raw // 3) * 4, edge, can_go)


def without_oldest(images: list[SentImage], count: int) -> list[SentImage]:
    left = []
    for one in images:
        if one.is_omittable and count > 0:
            count -= 1
        else:
            left.append(one)
    return left


@given(IMAGES, BUDGETS, LIMITS)
def test_what_is_asked_to_go_is_enough_at_once(
    images: list[SentImage], budget: ImageBudget, limits: RouteLimits
) -> None:
    try:
        check_images(images, budget, limits)
    except LlmError as error:
        failure = error.failure
        if failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED:
            assert not all(one.is_omittable for one in images)
            return
        assert failure.offload_images is not None
        assert 1 <= failure.offload_images <= omittable(images)

        check_images(without_oldest(images, failure.offload_images), budget, limits)


@given(IMAGES, BUDGETS)
def test_pictures_that_can_all_go_are_counted_as_the_budget_says_r241(
    images: list[SentImage], budget: ImageBudget
) -> None:
    all_can_go = [image(one.raw_bytes) for one in images]

    expected = required_offload([one.raw_bytes for one in images], budget)

    assert for_budget(all_can_go, budget) == expected


def test_pictures_that_cannot_go_are_counted_beside_those_that_can_v7() -> None:
    images = [image(30, can_go=False), image(30), image(30)]

    assert for_budget(images, ImageBudget("raw", 60)) == 1
    assert for_budget(images, ImageBudget("raw", 30)) == 2
    assert for_budget(images, ImageBudget("raw", 29)) is None
    assert for_budget(images, ImageBudget("raw", None, 1)) == 2


def test_129_pictures_of_1_mib_in_file_mode_give_65_r245() -> None:
    budget = ImageBudget("raw", 128 * MIB, 600, 64 * MIB, 20)

    with pytest.raises(LlmError) as caught:
        check_images([image(MIB)] * 129, budget, RouteLimits())

    assert caught.value.failure.offload_images == 65
    assert "129 pictures" in caught.value.failure.message


def test_a_body_at_its_limit_fits() -> None:
    limits = RouteLimits(max_body_bytes=1000)

    check_body([image(300)], 1000, limits)
    with pytest.raises(LlmError) as caught:
        check_body([image(300)], 1001, limits)

    assert caught.value.failure.offload_images == 1


def test_a_body_frees_whole_quanta() -> None:
    limits = RouteLimits(max_body_bytes=1000, body_quantum=500)

    with pytest.raises(LlmError) as caught:
        check_body([image(75)] * 10, 1010, limits)

    assert caught.value.failure.offload_images == 6


def test_a_picture_at_fault_takes_the_older_ones_with_it() -> None:
    images = [image(1), image(1, can_go=False), image(9), image(1)]

    assert through(images, lambda one: one.raw_bytes == 9) == 2
    assert through(images, lambda one: one.raw_bytes == 8) == 0
    assert through(images, lambda one: not one.is_omittable) is None


def test_a_blind_search_halves() -> None:
    images = [image(30), image(30), image(300)]

    assert half(images) == 2
    assert half_of_bytes(images) == 3
    assert half_of_bytes([image(300), image(30)]) == 1
