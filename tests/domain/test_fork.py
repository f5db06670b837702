"""The pure half of forking: boundary, open turn, what the child starts with (group K)."""

import pytest

from everfold.session import doors
from everfold.session.composition import Composition
from everfold.session.errors import (
    BoundaryError,
    OpenTurnError,
    ProjectionMissingError,
    UnknownEventError,
)
from everfold.session.events import Event
from everfold.session.fork import (
    check_boundary,
    check_closed,
    check_readable,
    free_id,
    plan_fork,
)
from everfold.session.frozen import Json
from everfold.session.session import Session, header_of
from everfold.session.state import SessionState, StateFold
from tests.domain.kit import (
    APPEND,
    HEADER,
    append_all,
    composition,
    counting_means,
    image,
    log,
    new_session,
    omit,
    user,
    view,
    wire,
)

PARENT = {**HEADER, "cwd": "/srv/quay", "origin": "subagent", "agentPreset": "p", "x": 1}


@pytest.mark.parametrize(("boundary", "seq"), [(0, 0), (9, 9), (3.0, 3), (-0.0, 0), (None, 9)])
def test_a_boundary_is_an_inclusive_seq_r165_r168(boundary: object, seq: int) -> None:
    assert check_boundary(boundary, 9) == seq


@pytest.mark.parametrize(
    "boundary", [-1, 10, 0.5, True, False, "3", [], float("nan"), float("inf"), 2**60]
)
def test_another_boundary_is_refused_r168(boundary: object) -> None:
    with pytest.raises(BoundaryError, match=r"0\.\.9") as caught:
        check_boundary(boundary, 9)

    assert caught.value.code == "fork-boundary"
    assert caught.value.last == 9


def test_an_empty_session_is_forked_without_a_boundary_alone_r166() -> None:
    assert check_boundary(None, -1) == -1
    for boundary in (0, -0.0, -1):
        with pytest.raises(BoundaryError):
            check_boundary(boundary, -1)


def test_a_prefix_that_ends_inside_a_turn_is_refused_r169() -> None:
    with pytest.raises(OpenTurnError, match="starts at seq 4") as caught:
        check_closed("s", 7, Event("turn/start", 4, {"turn": 1}))

    assert (caught.value.code, caught.value.boundary, caught.value.seq) == ("fork-open-turn", 7, 4)


def test_a_prefix_without_a_turn_or_after_one_is_fine_r170() -> None:
    check_closed("s", 7, None)
    check_closed("s", 7, Event("turn/end", 4, {}))


def test_a_prefix_must_be_readable_here_r175_v4() -> None:
    check_readable({"user/message", "image/offload", "x/new?"}, composition())

    with pytest.raises(ProjectionMissingError):
        check_readable({"user/message", "image/offload"}, Composition())
    with pytest.raises(ProjectionMissingError):
        check_readable({"image/offload?"}, Composition())
    with pytest.raises(UnknownEventError) as caught:
        check_readable({"user/message", "x%3F"}, composition())
    assert caught.value.type == "x?"


def test_the_child_names_its_parent_and_keeps_cwd_r171() -> None:
    plan = plan_fork(PARENT, "s", "child", 4, counting_means())

    header = header_of(plan.header)
    created_at = header.pop("createdAt")
    assert header == {
        "version": 3,
        "id": "child",
        "isSeeded": True,
        "parentSession": "s",
        "cwd": "/srv/quay",
    }
    assert created_at == plan.marker.time


def test_the_childs_marker_says_inherited_r155() -> None:
    plan = plan_fork(HEADER, "s", "child", 4, counting_means())

    assert (plan.marker.type, plan.marker.data) == ("session/end-seed", {"inherited": True})
    assert (plan.marker.originator_id, plan.marker.seq, plan.upto_version) == ("child", 5, 6)


def test_a_fork_of_nothing_holds_its_marker_alone_r166() -> None:
    plan = plan_fork(HEADER, "s", "child", -1, counting_means())

    assert (plan.upto_version, plan.marker.seq) == (1, 0)


def fork(parent: Session, rows: list[Json], boundary: int) -> Session:
    """The child as a store makes it: header, copied rows, marker."""
    plan = plan_fork(parent.header, parent.id, "child", boundary, counting_means())
    fold = StateFold(SessionState.empty(), parent.composition)
    fold.run([*rows[: boundary + 1], plan.marker])
    return Session(header_of(plan.header), parent.composition, counting_means(), state=fold.state())


def test_omissions_of_the_prefix_hold_in_the_child_and_only_they_r164_r173() -> None:
    parent = new_session()
    rows: list[Json] = list(
        append_all(
            parent,
            log(
                ("user/message", user("u", image(1), image(2))),
                ("image/offload", omit((0, [0]))),
                ("image/offload", omit((0, [1]))),
            ),
        )
    )

    child = fork(parent, rows, 1)
    child.append("user/message", user("own"), APPEND)

    assert [block.get("offloaded") for block in child.messages()[0]["content"]] == [True, None]
    assert [block.get("offloaded") for block in parent.messages()[0]["content"]] == [True, True]
    assert (child.inherited_count, child.next_seq, parent.next_seq) == (2, 4, 3)


def test_a_fork_of_a_fork_inherits_the_parents_marker_r172() -> None:
    parent = new_session()
    rows: list[Json] = list(append_all(parent, log(("todo/write", {}))))
    child = fork(parent, rows, 0)
    marker = plan_fork(HEADER, "s", "child", 0, counting_means()).marker

    grandchild = fork(child, [*rows, marker], 1)

    assert (child.inherited_count, grandchild.inherited_count) == (1, 2)


def test_a_forked_log_is_what_a_fork_by_seed_gives_r163() -> None:
    parent = new_session()
    rows: list[Json] = list(
        append_all(parent, log(("user/message", user("u", image())), ("turn/start", {"turn": 1})))
    )
    child = fork(parent, rows, 1)

    seeded = doors.seed(dict(child.header), wire(rows), composition(), counting_means())

    assert view(seeded.session) == view(child)


def test_ids_are_counted_and_taken_ones_skipped_r176() -> None:
    taken = {"session-1", "session-2", "session-4"}

    assert free_id(taken.__contains__) == "session-3"
    assert free_id(taken.__contains__, start=4) == "session-5"
    assert free_id(lambda _: False) == "session-1"


def test_beyond_many_taken_ids_few_are_asked_for() -> None:
    asked: list[str] = []

    def is_taken(name: str) -> bool:
        asked.append(name)
        return int(name.removeprefix("session-")) <= 10_000

    found = free_id(is_taken)

    assert found == "session-10001"
    assert len(asked) < 40
