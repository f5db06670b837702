"""Rules of behaviour that no smaller test shows: what budgets mean, and what of a request stays as it is."""

from dataclasses import replace
from typing import Any

import pytest

from everfold.agent.tools import ToolOutput
from everfold.llm.failure import FailureCode, LlmFailure
from everfold.projections.image_offload.decisions import omit
from tests.end_to_end.conftest import Opening
from tests.end_to_end.product import UNCHECKED, Product, image
from tests.end_to_end.standing import Standing
from tests.providers.answers import Answer, ToolUse
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake

CALLS = Answer("", calls=(ToolUse("c", "look"),), finish="tool-calls")
SIZE = 3_000
ENCODED = 4_000


def seen_parts(product: Product, call: int) -> list[Any]:
    """Return the messages of one request as they were sent."""
    body: Any = product.fake.calls[call].body
    parts: list[Any] = body.get("messages", body.get("input"))
    return parts


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        ({}, 6),
        ({"representation": "base64", "max_bytes": 5 * ENCODED}, 5),
        ({"representation": "raw", "max_bytes": 5 * SIZE}, 5),
        ({"representation": "raw", "max_bytes": 5 * ENCODED}, 6),
        ({"max_images": 4}, 4),
        ({"max_images": 4, "count_quantum": 4}, 2),
        ({"max_bytes": 5 * ENCODED, "byte_quantum": 2 * ENCODED}, 3),
        ({"max_bytes": 5 * ENCODED, "max_images": 3}, 3),
    ],
)
def test_r238_each_field_of_a_budget_counts(
    opened: Opening, fake: StrictFake, budget: dict[str, Any], kept: int
) -> None:
    inline: dict[str, Any] = {**UNCHECKED["inline"], **budget}
    product = opened({**UNCHECKED, "inline": inline})
    product.most_calls = 1

    result = product.say("see", *[image(img(SIZE, shade=n)) for n in range(6)])

    assert result.kind == "completed"
    assert sum(product.kept()) == kept


def test_r246_no_more_is_asked_to_go_than_there_is(opened: Opening, fake: StrictFake) -> None:
    inline = {**UNCHECKED["inline"], "max_images": 5, "count_quantum": 5}
    product = opened({**UNCHECKED, "inline": {**inline, "max_bytes": 10, "byte_quantum": 10}})
    product.most_calls = 1

    result = product.say("see", *[image(img(SIZE, shade=n)) for n in range(6)])

    assert result.kind == "completed"
    assert product.kept() == [False] * 6
    (omission,) = product.data("image/offload")
    assert [target["imageIndexes"] for target in omission["targets"]] == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("count", [0, -1, 2**53, 1.0, 1.5, True, "3", None, [1]])
def test_r252_a_count_that_is_none_is_dropped_and_nothing_is_omitted(count: Any) -> None:
    data = {"message": "too large", "code": "IMAGE_OFFLOAD_REQUIRED", "offloadImages": count}

    read = LlmFailure.from_json(data)

    assert read.offload_images is None
    assert "offloadImages" not in read.to_json()


@pytest.mark.parametrize("count", [1, 2, 2**53 - 1])
def test_r252_a_positive_safe_whole_number_is_kept(count: int) -> None:
    failure = LlmFailure("too large", FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=count)

    assert LlmFailure.from_json(failure.to_json()) == failure


def test_r260_what_nothing_changed_is_sent_as_it_was(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 3
    product.say("one", image(img(shade=1)))
    product.say("two", image(img(shade=2)))
    (first, _) = [event.seq for event in product.log() if event.type == "user/message"]

    omit(product.access, {first: [0]})
    product.say("three")

    before, after = seen_parts(product, 1), seen_parts(product, 2)
    start = next(at for at, part in enumerate(before) if "one" in str(part))
    differing = [at for at in range(len(before) - 1) if before[at] != after[at]]
    assert differing == [start]


def test_r255_r256_an_omitted_picture_is_named_with_its_type_and_size(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_images=1)
    standing.under_test = {"count"}
    product = opened(UNCHECKED)
    product.most_calls = 2

    product.say("see", image(img(SIZE, shade=1), "quay.png"), image(img(SIZE, shade=2)))

    seen = fake.last.seen
    assert seen is not None
    assert "quay.png" in seen.all_text
    assert "image/png (.png), 8x8 pixels, 3000 bytes" in seen.all_text


def test_r247_what_a_tool_showed_counts_like_what_a_user_showed(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened({**UNCHECKED, "inline": {**UNCHECKED["inline"], "max_images": 3}})
    product.most_calls = 2

    def look() -> ToolOutput:
        """Look around."""
        return ToolOutput([image(img(shade=10 + n)) for n in range(3)])

    product.tools = [look]
    fake.will(CALLS)

    result = product.say("see", image(img(shade=1)))

    assert result.kind == "completed"
    assert product.kept() == [False, True, True, True]
