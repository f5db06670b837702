"""Image occurrences in message content: R201 to R204, R216, R219."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.images import images, is_omitted, marked, retained
from everfold.session.frozen import freeze, json_equal, thaw
from tests.domain import model
from tests.domain.kit import image, text
from tests.domain.logs import contents


def result(*content: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": "c", "content": list(content)}


CONTENT = [
    text("x"),
    image(1),
    result(image(2), result(image(3), text("y")), image(2)),
    {"type": "file", "attachment": image(8)["attachment"]},
    {"type": "x/unknown", "content": [image(9)]},
    image(1, offloaded=True),
    image(4, offloaded=False),
]


def test_traversal_is_depth_first_in_content_order_r201_r203() -> None:
    found = [each["attachment"]["bytes"] - 1000 for each in images(CONTENT)]

    assert found == [1, 2, 3, 2, 1, 4]


def test_equal_images_are_distinct_occurrences_r204() -> None:
    assert len(list(images([image(1), image(1)]))) == 2


@pytest.mark.parametrize(
    "block",
    [
        None,
        5,
        "image",
        ["image"],
        {},
        {"type": None},
        {"type": "tool-result"},
        result() | {"content": 5},
    ],
)
def test_odd_blocks_hold_no_image_r202(block: Any) -> None:
    assert list(images([block, image(1)])) == [image(1)]
    assert marked([block, image(1)], [0]) == [block, image(1, offloaded=True)]


@pytest.mark.parametrize(
    ("mark", "omitted"), [(True, True), (False, False), (None, False), (1, False), ("true", False)]
)
def test_only_true_marks_an_image_omitted_r216(mark: Any, omitted: bool) -> None:
    assert is_omitted(image(1, offloaded=mark)) == omitted


def test_retained_indexes_count_omitted_occurrences_too_r203() -> None:
    assert retained(CONTENT) == [0, 1, 2, 3, 5]


def test_selected_occurrences_are_marked_and_no_others_r218() -> None:
    found = [each.get("offloaded") for each in images(marked(CONTENT, [0, 2, 5]))]

    assert found == [True, None, True, None, True, True]


def test_blocks_without_a_selected_image_are_the_same_objects_r219() -> None:
    content = freeze(CONTENT)

    after = marked(content, [2])

    assert [new is old for new, old in zip(after, content, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
        True,
        True,
    ]
    inner_after, inner_before = after[2]["content"], content[2]["content"]
    assert inner_after[0] is inner_before[0]
    assert inner_after[2] is inner_before[2]
    assert inner_after[1]["content"][1] is inner_before[1]["content"][1]


def test_nothing_selected_changes_nothing() -> None:
    content = freeze(CONTENT)

    assert all(new is old for new, old in zip(marked(content, []), content, strict=True))


@given(contents, st.data())
def test_marking_agrees_with_the_naive_model(content: list[Any], data: st.DataObject) -> None:
    count = len(model.images(content))
    chosen = data.draw(st.sets(st.integers(0, count - 1)) if count else st.just(set()))
    expected = thaw(content)
    for index in chosen:
        model.images(expected)[index]["offloaded"] = True

    after = marked(freeze(content), chosen)

    assert json_equal(after, expected)
    assert retained(after) == [
        index
        for index, each in enumerate(model.images(expected))
        if each.get("offloaded") is not True
    ]


def test_marking_leaves_the_content_given_as_it_is_r220() -> None:
    content: list[Any] = [image(1), result(image(2))]

    marked(content, [0, 1])

    assert content == [image(1), result(image(2))]
