"""What the command line advises: commands, where the library names functions."""

import pytest

from everfold.agent.errors import TurnOpenError
from everfold.agent.results import TurnResult
from everfold.cli.advising import message_of
from everfold.cli.talk.telling import failure_text
from everfold.llm.failure import FailureCode, LlmFailure
from everfold.projections.compaction.errors import CompactionBusyError
from everfold.routes.failures import UNKNOWN_MODEL
from everfold.session.errors import CorruptStreamError, IdError, SessionError
from tests.test_messages import PYTHON, SHELL


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (TurnOpenError("s", 1, 0), "add --resume, or run `everfold resume s`"),
        (CompactionBusyError("s", 4), "`everfold resume s` frees the session"),
        (CorruptStreamError("s", 4, "torn"), "`everfold show s --at 3` shows it as it was before"),
    ],
)
def test_an_error_advises_a_command_in_place_of_python(error: SessionError, advice: str) -> None:
    told = message_of(error)

    assert PYTHON.search(str(error))
    assert told.startswith(f"{error.fact}; ")
    assert told.endswith(advice)
    assert not PYTHON.search(told)


@pytest.mark.parametrize("seq", [-1, 0])
def test_nothing_is_before_the_first_event(seq: int) -> None:
    error = CorruptStreamError("s", seq, "torn")

    assert message_of(error) == str(error) == error.fact


def test_an_error_without_advice_is_told_as_it_is() -> None:
    error = IdError("", "it is empty")

    assert message_of(error) == str(error)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (FailureCode.CONTEXT_WINDOW_EXCEEDED, "`everfold compact s`"),
        (FailureCode.IMAGE_OFFLOAD_REQUIRED, "`everfold images s`"),
        (FailureCode.INVALID_REQUEST, "`everfold omit s SEQ:INDEX`"),
        (FailureCode.UNSUPPORTED_CONTENT, "`everfold fork s --at SEQ`"),
    ],
)
def test_a_failed_turn_advises_commands(code: FailureCode, advice: str) -> None:
    result = TurnResult("s", 1, "error", failure=LlmFailure("no", code))

    told = failure_text(result)

    assert told.startswith(f"{code}: no; ")
    assert advice in told
    assert not PYTHON.search(told)
    assert not SHELL.search(str(result.advice))


def test_advice_that_fits_both_is_the_librarys() -> None:
    result = TurnResult("s", 1, "error", failure=LlmFailure("no", FailureCode.AUTH))

    assert failure_text(result) == "AUTH: no; check the key of this route"


def test_a_turn_that_ended_otherwise_is_told_by_its_kind() -> None:
    assert failure_text(TurnResult("s", 1, "blocked")) == "the turn ended: blocked"


def test_an_unknown_model_is_told_with_the_options_that_choose_others() -> None:
    message = f"the provider answered 404: no model 'm'; {UNKNOWN_MODEL}"
    failure = LlmFailure(message, FailureCode.INVALID_REQUEST, 404)

    told = failure_text(TurnResult("s", 1, "error", failure=failure))

    assert told == f"INVALID_REQUEST: {message}; --model and --route choose others"
