"""Refusals carry stable codes, one for each thing that a caller can act on."""

import pytest

from everfold.projections.image_offload import errors as offload
from everfold.session import errors
from everfold.session.errors import ProjectionError, SessionError, SurfaceError

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


def test_a_refusal_says_which_event_it_is_about() -> None:
    assert SessionError("no", seq=3).seq == 3
    assert SessionError("no").seq is None
