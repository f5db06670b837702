"""The design notes' scenario: durable omission beside recomputing it for every request."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.bench.simulation import Line, simulate


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """The whole scenario, run once; while it runs every request is rebuilt from the log alone."""
    folder: Path = tmp_path_factory.mktemp("simulation")
    return simulate(f"sqlite:///{folder / 'store.sqlite'}?synchronous=off")


def test_the_prefix_sent_moves_only_at_a_logged_decision(lines: list[Line]) -> None:
    moved = [line for line in lines if line.ours.kept < 1.0]

    assert moved
    assert all(line.decision for line in moved)


def test_no_image_comes_back_by_itself(lines: list[Line]) -> None:
    """R224: not when the budget grows, the outage ends, or a summary shortens the history."""
    for before, after in pairwise(lines):
        newest = max(before.ours.shown)

        assert {image for image in after.ours.shown if image <= newest} <= set(before.ours.shown)


def test_recomputing_brings_images_back_and_breaks_the_prefix_unlogged(lines: list[Line]) -> None:
    """What durable omission is there to prevent does happen without it, in this very scenario."""
    returned = sum(
        image not in before.recomputed.shown
        for before, after in pairwise(lines)
        for image in after.recomputed.shown
        if image <= max(before.recomputed.shown)
    )
    unlogged = [line for line in lines if line.recomputed.kept < 1.0 and not line.decision]

    assert returned > 50
    assert unlogged


def test_every_request_keeps_its_routes_budget(lines: list[Line]) -> None:
    most = {"files": 42, "inline": 5, "small": 6}

    assert all(len(line.ours.shown) <= most[line.phase] for line in lines)
