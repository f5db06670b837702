"""The image/offload event: exact payload, order of the checks, what an omission does (group O)."""

from typing import Any

import pytest

from everfold.projections.image_offload.errors import (
    OffloadIndexError,
    OffloadPayloadError,
    OffloadTargetError,
)
from everfold.projections.image_offload.projection import mark_message
from everfold.session import doors
from everfold.session.errors import ProjectionError, SessionError
from everfold.session.frozen import Json
from everfold.session.session import Session
from tests.domain.kit import (
    APPEND,
    HEADER,
    append_all,
    assistant,
    composition,
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
    view,
    wire,
)

TYPE = "image/offload"


@pytest.fixture
def session() -> Session:
    session = new_session()
    append_all(
        session,
        log(
            ("system/message", system("s", image(9))),
            ("user/message", user("u", image(1), text("x"), image(1))),
            ("assistant/message", assistant("a", image(8))),
            ("tool/result", tool_result("c", image(2), image(3, offloaded=True))),
            ("todo/write", {}),
            ("user/message", user("old", image(4))),
            ("user/message", user("new", image(5)), replace(5, 5)),
        ),
    )
    return session


def refused(session: Session, error: type[SessionError], data: Json) -> str:
    """The refusal of this payload; nothing changed."""
    before = view(session)
    with pytest.raises(error) as caught:
        session.append(TYPE, data)
    assert view(session) == before
    assert caught.value.seq == session.next_seq
    assert isinstance(caught.value, ProjectionError)
    return str(caught.value)


def marks(session: Session, seq: int) -> list[Json]:
    """The marks of a node's top-level images."""
    content = dict(session.messages().items())[seq]["content"]
    return [block.get("offloaded") for block in content if block.get("type") == "image"]


GOOD = {"seq": 1, "imageIndexes": [0]}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        5,
        {},
        {"targets": None},
        {"targets": {}},
        {"targets": []},
        {"targets": [GOOD], "x": 1},
        {"Targets": [GOOD]},
        [GOOD],
        {"targets": [None]},
        {"targets": [[1, [0]]]},
        {"targets": [{}]},
        {"targets": [{"seq": 1}]},
        {"targets": [{"imageIndexes": [0]}]},
        {"targets": [{**GOOD, "x": 1}]},
        {"targets": [{**GOOD, "imageIndexes": []}]},
        {"targets": [{**GOOD, "imageIndexes": None}]},
        {"targets": [{**GOOD, "imageIndexes": 0}]},
        {"targets": [{**GOOD, "imageIndexes": {"0": 0}}]},
    ],
)
def test_the_payload_has_one_exact_form_r205_r206(session: Session, data: Json) -> None:
    assert "image/offload at seq 7" in refused(session, OffloadPayloadError, data)


@pytest.mark.parametrize("seq", [-1, 0.5, True, "1", None, [1], 2**53 - 1])
def test_a_target_is_a_seq_r206(session: Session, seq: Json) -> None:
    error = OffloadTargetError if seq == 2**53 - 1 else OffloadPayloadError

    refused(session, error, {"targets": [{**GOOD, "seq": seq}]})


@pytest.mark.parametrize("seq", [4, 5, 7, 8, 99])
def test_a_target_is_a_current_node_r210(session: Session, seq: int) -> None:
    assert f"target {seq} is not on the surface" in refused(
        session, OffloadTargetError, omit((seq, [0]))
    )


@pytest.mark.parametrize(("seq", "type_"), [(0, "system/message"), (2, "assistant/message")])
def test_images_that_are_no_input_are_refused_r211(session: Session, seq: int, type_: str) -> None:
    assert type_ in refused(session, OffloadTargetError, omit((seq, [0])))


@pytest.mark.parametrize("indexes", [[0], [1], [0, 1]])
def test_a_seq_is_named_once_r209(session: Session, indexes: list[int]) -> None:
    assert "seq 1 is a target twice" in refused(
        session, OffloadTargetError, omit((1, [0]), (3, [0]), (1, indexes))
    )


@pytest.mark.parametrize(
    "indexes", [[-1], [0.5], [True], ["0"], [None], [1, 0], [0, 0], [0, 0.0], [-0.5]]
)
def test_indexes_are_whole_and_increase_r212(session: Session, indexes: Any) -> None:
    assert "increasing order" in refused(session, OffloadIndexError, omit((1, indexes)))


@pytest.mark.parametrize("indexes", [[2], [0, 2], [99]])
def test_an_index_beyond_the_images_is_refused_r213(session: Session, indexes: list[int]) -> None:
    assert "beyond the message's 2 image(s)" in refused(
        session, OffloadIndexError, omit((1, indexes))
    )


def test_an_omitted_image_is_not_omitted_again_r214_r216(session: Session) -> None:
    assert "image 1 is omitted already" in refused(session, OffloadIndexError, omit((3, [1])))
    session.append(TYPE, omit((1, [0])))
    assert "image 0 is omitted already" in refused(session, OffloadIndexError, omit((1, [0, 1])))


def test_of_two_faults_the_omitted_one_is_reported_r215(session: Session) -> None:
    assert "image 1 is omitted already" in refused(session, OffloadIndexError, omit((3, [1, 99])))


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        ((99, [0]), (1, []), OffloadTargetError),
        ((1, [9]), (1, [0]), OffloadIndexError),
        ((0, [1, 0]), (1, [0]), OffloadTargetError),
        ((1, [0]), (1, []), OffloadPayloadError),
        ((1, [0]), (99, [1, 0]), OffloadTargetError),
    ],
)
def test_targets_are_checked_one_after_another_r207_r208(
    session: Session, first: Any, second: Any, error: type[SessionError]
) -> None:
    refused(session, error, omit(first, second))


def test_targets_need_no_order_r217(session: Session) -> None:
    session.append(TYPE, omit((6, [0]), (1, [1]), (3, [0])))

    assert (marks(session, 6), marks(session, 1)) == ([True], [None, True])


def test_whole_numbers_are_recognised_in_any_spelling(session: Session) -> None:
    session.append(TYPE, {"targets": [{"seq": 1.0, "imageIndexes": [0.0, 1]}]})

    assert marks(session, 1) == [True, True]


def test_id_source_and_other_blocks_are_kept_r219(session: Session) -> None:
    session.append(TYPE, omit((1, [1])))

    message = dict(session.messages().items())[1]
    assert message == user("u", image(1), text("x"), image(1, offloaded=True))


def test_omitting_a_logged_false_mark_sets_it_r216() -> None:
    session = new_session()
    session.append("user/message", user("u", image(1, offloaded=False)), APPEND)

    session.append(TYPE, omit((0, [0])))

    assert marks(session, 0) == [True]


def test_the_omission_of_a_replacement_works_like_any_other_r222(session: Session) -> None:
    session.append(TYPE, omit((6, [0])))

    assert marks(session, 6) == [True]


def test_an_omission_goes_with_its_node_r222_r223(session: Session) -> None:
    session.append(TYPE, omit((1, [0])))
    session.append("user/message", user("copy", image(1), image(1)), replace(1, 1))

    assert marks(session, 7 + 1) == [None, None]
    refused(session, OffloadTargetError, omit((1, [1])))


def test_a_tool_result_rewritten_with_its_marks_keeps_them_r223(session: Session) -> None:
    data = tool_result("c", image(2, offloaded=True), image(3, offloaded=True))
    session.append("tool/result", data, replace(3, 3))

    refused(session, OffloadIndexError, omit((7, [0])))


def test_omissions_never_revert_r224(session: Session) -> None:
    session.append(TYPE, omit((1, [0])))

    for _ in range(3):
        session.append("user/message", user("more"), APPEND)
        session.append(
            "request/header",
            {"header": {"config": {"provider": "p", "model": "n"}}, "reason": "change"},
        )

    assert marks(session, 1) == [True, None]


def test_omissions_hold_after_a_restore_r164(session: Session) -> None:
    session.append(TYPE, omit((1, [0]), (3, [0])))

    adopted = doors.restore(HEADER, wire(session.collect_events()), composition(), counting_means())

    assert adopted.session.messages() == list(session.messages())


def test_one_message_is_marked_without_a_session() -> None:
    message = user("u", image(1), image(2))

    assert mark_message(message, [1]) == user("u", image(1), image(2, offloaded=True))
    assert mark_message(message, []) == message
    assert message == user("u", image(1), image(2))
    for indexes in ([2], [1, 0], [True], [-1]):
        with pytest.raises(OffloadIndexError):
            mark_message(message, indexes)


@pytest.mark.parametrize("indexes", [None, 5, "0", {0: 1}, {0}, b"0"])
def test_image_indexes_that_are_no_list_are_refused(indexes: Any) -> None:
    with pytest.raises(OffloadIndexError, match="are no list"):
        mark_message(user("u", image(1)), indexes)


@pytest.mark.parametrize("message", [None, "hello", [], {}, {"content": "hello"}])
def test_what_is_no_message_has_no_images_to_mark(message: Any) -> None:
    with pytest.raises(OffloadTargetError, match="no message with a list of content"):
        mark_message(message, [])
