"""Refusals carry stable codes, one for each thing that a caller can act on."""

from collections.abc import Callable

import pytest

from everfold.projections.image_offload import errors as offload
from everfold.session import errors
from everfold.session.errors import ProjectionError, SessionError, SurfaceError
from everfold.session.session import Session
from tests.domain.kit import APPEND, new_session, user

GROUPS = {SessionError, SurfaceError, ProjectionError}
CODES = {
    "envelope", "sequence", "surface-op", "source-refs", "replace-range", "replace-coverage",
    "tool-rewrite", "system-head", "projection-missing", "projection-removed",
    "projection-duplicate", "projection-rejected", "offload-payload", "offload-target",
    "offload-index", "payload", "message-shape", "settlement", "json", "append-intent",
    "session-header", "seed-cut", "unknown-event", "session-exists", "fork-boundary",
    "fork-open-turn", "fork-not-found", "reentrant",
}  # fmt: skip
"""The vocabulary of the conformance cases; these texts never change."""


def refusals() -> list[type[SessionError]]:
    """Every refusal class of the domain and of the image plugin."""
    return [
        each
        for module in (errors, offload)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, SessionError) and each not in GROUPS
    ]


def test_every_code_of_the_vocabulary_belongs_to_one_refusal() -> None:
    codes = [each.code for each in set(refusals())]

    assert set(codes) >= CODES
    assert len(codes) == len(set(codes))
    assert SessionError.code not in codes


@pytest.mark.parametrize("error", refusals())
def test_every_refusal_says_when_it_happens(error: type[SessionError]) -> None:
    assert error.__name__.endswith("Error")
    assert error.__doc__


@pytest.mark.parametrize(
    "append",
    [
        lambda s: s.append("user/message", user(), {"surfaceOp": "x" * 10**6}),
        lambda s: s.append("user/message", {**user(), "role": "x" * 10**6}, APPEND),
        lambda s: s.append("todo/write", {"k" * 10**6: float("nan")}),
        lambda s: s.append("t" * 10**6, {}),
        lambda s: s.append("image/offload", {"targets": ["x" * 10**6]}),
    ],
)
def test_a_refusal_of_a_huge_value_is_short_enough_to_read(
    append: Callable[[Session], object],
) -> None:
    with pytest.raises(SessionError) as caught:
        append(new_session())

    assert len(str(caught.value)) < 2100
    assert "characters" in str(caught.value)


def test_a_long_refusal_keeps_its_beginning_and_its_end() -> None:
    message = "begin " + "x" * 5000 + " end"

    shown = str(SessionError(message))

    assert shown.startswith("begin xxx")
    assert shown.endswith("xxx end")
    assert "3010 characters" in shown


def test_a_refusal_says_which_event_it_is_about() -> None:
    assert SessionError("no", seq=3).seq == 3
    assert SessionError("no").seq is None
