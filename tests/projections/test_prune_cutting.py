"""Cutting the middle out of text: R291 to R293, R296."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.projections.tool_result_pruner.cutting import PruneLimits, marker_text, pruned
from tests.domain.kit import image, text, tool_result

LIMITS = PruneLimits(threshold=120, head=10, tail=5)


def joined(content: list[dict[str, str]]) -> str:
    """Return the text of all text blocks."""
    return "".join(block["text"] for block in content if block["type"] == "text")


def test_r291_the_defaults_are_8192_4096_and_1024() -> None:
    limits = PruneLimits()

    assert (limits.threshold, limits.head, limits.tail) == (8192, 4096, 1024)


def test_r291_head_marker_and_tail_must_fit_the_threshold() -> None:
    with pytest.raises(ValueError, match="more than the threshold of 100"):
        PruneLimits(threshold=100, head=60, tail=40)


def test_r292_text_at_the_threshold_stays_whole() -> None:
    assert pruned([text("a" * 120)], LIMITS) is None
    assert pruned([text("a" * 121)], LIMITS) is not None


def test_r292_code_points_count_not_utf16_units() -> None:
    assert pruned([text("\U0001f600" * 120)], LIMITS) is None


def test_r292_blocks_that_are_not_text_do_not_count() -> None:
    assert pruned([text("a" * 120), image(1), {"type": "x", "text": "b" * 200}], LIMITS) is None


def test_r293_the_middle_is_cut_and_one_marker_stands_where_the_cut_begins() -> None:
    content = pruned([text("h" * 10 + "m" * 200 + "t" * 5)], LIMITS)

    assert content == [text("h" * 10 + marker_text(200) + "t" * 5)]


def test_r293_the_cut_runs_over_blocks_and_others_keep_their_place() -> None:
    blocks = [text("h" * 20), image(1), text("m" * 200), image(2), text("t" * 8)]

    content = pruned(blocks, LIMITS)

    assert content == [text("h" * 10 + marker_text(213)), image(1), image(2), text("t" * 5)]


def test_r293_a_block_before_the_cut_is_the_same_object() -> None:
    first = text("h" * 10)

    content = pruned([first, text("m" * 200)], LIMITS)

    assert content is not None
    assert content[0] is first
    assert content[1:] == [text(marker_text(195) + "m" * 5)]


def test_r296_nested_tool_results_are_not_entered() -> None:
    inner = tool_result("d", text("m" * 500))["message"]["content"][0]

    assert pruned([text("short"), inner], LIMITS) is None


@given(st.lists(st.text(max_size=90), max_size=6))
def test_what_was_cut_stays_within_the_threshold_and_keeps_both_ends(texts: list[str]) -> None:
    before = [text(each) for each in texts]

    after = pruned(before, LIMITS)

    whole = joined(before)
    if after is None:
        assert len(whole) <= 120
        return
    assert joined(after) == whole[:10] + marker_text(len(whole) - 15) + whole[-5:]
    assert all(block["text"] for block in after if "…" in block["text"])
    assert pruned(after, LIMITS) is None
