"""The contract of projections refuses those that break it: it is no formality."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest

from everfold.projections.testing import Example, MessageProjectionContract, Refusal
from everfold.session.errors import SessionError
from everfold.session.events import EventLike
from everfold.session.frozen import Json, thaw
from everfold.session.projection import History, MessageProjection, message_at
from tests.domain.kit import log, text, user

HISTORY = log(("user/message", user("u", text("a"), text("b"))), ("user/message", user("v")))
EXAMPLE = Example("one", HISTORY, {"seq": 0}, frozenset((0,)))
REFUSAL = Refusal("one", HISTORY, {"seq": 9}, "mine")
NUMBERS = count()
Project = Callable[[EventLike, History], Mapping[int, Json]]


def suite(project: Project, plugin: str = "mine") -> MessageProjectionContract:
    """The contract for a projection of this function."""

    class Mine(MessageProjectionContract):
        projection = MessageProjection("note/mine", project, plugin=plugin)
        examples = (EXAMPLE,)
        refusals = (REFUSAL,)

    return Mine()


def shown(history: History, seq: int = 0) -> dict[str, Any]:
    message = message_at(history, seq)
    assert message is not None
    return dict(message)


def numbered(_event: EventLike, history: History) -> Mapping[int, Json]:
    return {0: {**shown(history), "content": [text(f"{next(NUMBERS)}")]}}


def copying(_event: EventLike, history: History) -> Mapping[int, Json]:
    return {0: {**shown(history), "content": thaw(shown(history)["content"])}}


def consuming(event: EventLike, history: History) -> Mapping[int, Json]:
    event.data.pop("seq")
    return {0: shown(history)}


def wide(_event: EventLike, history: History) -> Mapping[int, Json]:
    return {0: shown(history), 1: shown(history, 1)}


def renaming(_event: EventLike, history: History) -> Mapping[int, Json]:
    return {0: {**shown(history), "id": "other"}}


def accepting(_event: EventLike, _history: History) -> Mapping[int, Json]:
    return {}


def vague(_event: EventLike, _history: History) -> Mapping[int, Json]:
    raise SessionError("no")


def late(event: EventLike, history: History) -> Mapping[int, Json]:
    if event.data["seq"] == 9:
        raise KeyError(9)
    return {0: shown(history)}


@pytest.mark.parametrize(
    ("project", "test"),
    [
        (numbered, "test_the_same_history_gives_the_same_answer"),
        (copying, "test_blocks_that_do_not_change_stay_the_same_objects"),
        (consuming, "test_its_arguments_stay_as_they_are"),
        (wide, "test_it_changes_the_messages_that_the_example_says"),
        (renaming, "test_id_role_and_source_are_kept"),
    ],
)
def test_a_projection_that_breaks_a_promise_fails(project: Project, test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(suite(project), test)(EXAMPLE)


@pytest.mark.parametrize("project", [accepting, vague, late])
def test_a_projection_that_does_not_refuse_by_code_fails(project: Project) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception, KeyError)):
        suite(project).test_a_refusal_has_a_code_and_names_the_event(REFUSAL)


def test_a_projection_without_an_owner_fails() -> None:
    with pytest.raises(AssertionError):
        suite(accepting, plugin="unnamed").test_it_names_its_type_and_its_plugin()


def test_a_projection_that_stumbles_over_malformed_data_fails() -> None:
    with pytest.raises(TypeError, match="not subscriptable"):
        suite(late).test_malformed_data_are_refused_with_an_error_of_a_session(EXAMPLE)
