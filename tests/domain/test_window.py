"""A surface over a loaded part of a log: group M."""

import pytest

from everfold.projections.image_offload.errors import OffloadTargetError
from everfold.session.detached import FoldResult, fold_surface
from everfold.session.errors import EventSequenceError, ReplaceRangeError
from everfold.session.events import Event, EventLike
from everfold.session.frozen import Json
from everfold.session.projection import History, MessageProjection, message_at
from tests.domain.kit import APPEND, Record, composition, image, omit, record, replace, user
from tests.domain.retitle import TYPE

BASE = 100


def window(
    *records: Record, base: int = BASE, more: tuple[MessageProjection, ...] = ()
) -> FoldResult:
    """Fold a window that starts at `base`."""
    return fold_surface([Event.of(each) for each in records], composition(*more), base_seq=base)


def message(seq: int, **more: Json) -> Record:
    """A user message with an image."""
    return record("user/message", seq, user(f"u{seq}", image()), **{**APPEND, **more})


def test_the_first_event_has_the_base_seq_r182() -> None:
    assert list(window(message(BASE)).surface.nodes) == [BASE]
    for seq in (0, BASE - 1, BASE + 1):
        with pytest.raises(EventSequenceError):
            window(message(seq))


def test_an_empty_window_continues_at_its_base() -> None:
    surface = window().surface

    assert (surface.base_seq, surface.next_seq, list(surface.nodes)) == (BASE, BASE, [])


def test_sources_may_stand_before_the_window_r183() -> None:
    result = window(message(BASE), message(BASE + 1, sourceEventSeqs=[0, 7]))

    assert list(result.surface.nodes) == [BASE, BASE + 1]


def test_a_replacement_may_cite_events_before_the_window_r183() -> None:
    result = window(message(BASE), message(BASE + 1, **replace(BASE, BASE, 3, BASE)))

    assert list(result.surface.nodes) == [BASE + 1]


def test_end_points_before_the_window_are_refused_r184() -> None:
    with pytest.raises(ReplaceRangeError, match="names 5, which is not on the surface"):
        window(message(BASE), message(BASE + 1, **replace(5, BASE)))


def test_targets_before_the_window_are_refused_r184() -> None:
    with pytest.raises(OffloadTargetError, match="target 5 is not on the surface"):
        window(message(BASE), record("image/offload", BASE + 1, omit((5, [0]))))


def test_generations_count_what_the_window_holds_r186() -> None:
    result = window(
        message(BASE),
        message(BASE + 1, **replace(BASE, BASE)),
        record("image/offload", BASE + 2, omit((BASE + 1, [0]))),
    )

    assert (result.surface.replace_generation, result.surface.content_generation) == (1, 2)
    assert result.messages()[0][1]["content"] == [image(offloaded=True)]


def test_interpreters_find_events_by_seq_in_a_window_r185() -> None:
    seen: list[Json] = []

    def look(event: EventLike, history: History) -> dict[int, Json]:
        seen.append([history.base_seq, list(history.nodes), message_at(history, BASE)])
        seen.append([history.event(seq) for seq in (-1, 0, 5, BASE - 1, BASE + 1, BASE + 9)])
        return {}

    window(
        message(BASE),
        record(TYPE, BASE + 1, {}),
        more=(MessageProjection(TYPE, look, plugin="looker"),),
    )

    assert seen == [[BASE, [BASE], user(f"u{BASE}", image())], [None] * 6]
