"""Choosing the oldest images: group P."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.projections.image_offload.errors import OffloadTargetError
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.projections.image_offload.selection import oldest_images
from everfold.session.composition import Composition
from everfold.session.errors import ProjectionChangedError
from everfold.session.frozen import Json
from everfold.session.session import Session
from tests.domain.kit import (
    APPEND,
    HEADER,
    append_all,
    assistant,
    counting_means,
    image,
    log,
    new_session,
    omit,
    replace,
    system,
    text,
    tool_result,
    user,
)
from tests.domain.logs import logs
from tests.domain.model import Log, images


@pytest.fixture
def session() -> Session:
    session = new_session()
    append_all(
        session,
        log(
            ("system/message", system("s", image(9))),
            ("user/message", user("u", text("x"), image(1), image(2))),
            ("assistant/message", assistant("a", image(8))),
            ("tool/result", tool_result("c", image(3), image(4, offloaded=True))),
            ("user/message", user("v", image(5))),
        ),
    )
    return session


def chosen(session: Session, count: int, selection: list[int] | None = None) -> Json:
    """The targets of the wish, by seq; None for no wish."""
    wish = oldest_images(session, count, selection=selection)
    if wish is None:
        return None
    assert wish.type == "image/offload"
    return [(target["seq"], target["imageIndexes"]) for target in wish.data["targets"]]


@pytest.mark.parametrize(
    ("count", "targets"),
    [
        (1, [(1, [0])]),
        (2, [(1, [0, 1])]),
        (3, [(1, [0, 1]), (3, [0])]),
        (4, [(1, [0, 1]), (3, [0]), (4, [0])]),
        (99, [(1, [0, 1]), (3, [0]), (4, [0])]),
    ],
)
def test_the_first_retained_input_images_are_taken_r228_to_r232(
    session: Session, count: int, targets: Json
) -> None:
    assert chosen(session, count) == targets


@pytest.mark.parametrize("count", [0, -1])
def test_for_nothing_nothing_is_written_r233(session: Session, count: int) -> None:
    assert chosen(session, count) is None


def test_when_none_is_left_nothing_is_written_r233(session: Session) -> None:
    for _ in range(4):
        wish = oldest_images(session, 1)
        assert wish is not None
        session.append(wish.type, wish.data)

    assert chosen(session, 1) is None


def test_omitted_images_are_passed_over_r230(session: Session) -> None:
    session.append("image/offload", omit((1, [0])))

    assert chosen(session, 2) == [(1, [1]), (3, [0])]


def test_the_order_is_that_of_the_surface_r234(session: Session) -> None:
    session.append("user/message", user("n", image(6)), replace(1, 1))

    assert chosen(session, 2) == [(5, [0]), (3, [0])]


@pytest.mark.parametrize(
    ("selection", "targets"),
    [
        ([3], [(3, [0])]),
        ([4, 1], [(4, [0]), (1, [0])]),
        ([0, 2], None),
        ([], None),
        ([99, -1, 4], [(4, [0])]),
    ],
)
def test_a_selection_limits_the_choice_in_its_own_order_r228_r235(
    session: Session, selection: list[int], targets: Json
) -> None:
    assert chosen(session, 2, selection) == targets


def test_a_selected_hidden_node_fails_at_append_r236(session: Session) -> None:
    session.append("user/message", user("n"), replace(1, 1))

    wish = oldest_images(session, 1, selection=[1])

    assert wish is not None
    with pytest.raises(OffloadTargetError):
        session.append(wish.type, wish.data)


def test_without_the_interpreter_nothing_is_chosen_r237() -> None:
    composition = Composition()
    dispose = composition.register(IMAGE_OFFLOAD)
    session = Session.create(HEADER, composition, counting_means())
    session.append("user/message", user("u", image(1), image(2)), APPEND)
    session.append("image/offload", omit((0, [0])))

    dispose()

    with pytest.raises(ProjectionChangedError):
        oldest_images(session, 1)


@given(logs(), st.integers(0, 12))
def test_any_log_takes_the_omission_that_is_chosen(log: Log, count: int) -> None:
    session = new_session(header=log.header())
    append_all(session, log.records)
    before = _retained(session)

    wish = oldest_images(session, count)
    if wish is not None:
        session.append(wish.type, wish.data)

    assert _retained(session) == max(before - count, 0)
    assert (wish is None) == (count == 0 or before == 0)


def _retained(session: Session) -> int:
    found = 0
    for seq, message in session.messages().items():
        event = session.event(seq)
        if event is not None and event.type in ("user/message", "tool/result"):
            kept = [
                each for each in images(message["content"]) if each.get("offloaded") is not True
            ]
            found += len(kept)
    return found
