"""What hosts answer to ids and places that no session can have."""

import pytest

from everfold.host.sessions import Sessions
from everfold.session.errors import ConflictError, IdError, SessionError, StoreTextError
from tests.host.kit import hello

BEYOND = 2**80


@pytest.mark.parametrize("wanted", ["a\0b", "\ud800", "x" * 201, "a/b", ""])
def test_an_id_that_no_session_can_have_is_refused_as_an_id(
    sessions: Sessions, wanted: str
) -> None:
    with pytest.raises(IdError):
        sessions.load(wanted)
    with pytest.raises(IdError):
        sessions.append_batch(wanted, [hello()])


@pytest.mark.parametrize("place", ["after", "prefix"])
@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_list_by_text_that_no_id_can_hold_is_refused(
    sessions: Sessions, place: str, text: str
) -> None:
    sessions.create("s")
    wanted = {place: text}

    with pytest.raises(StoreTextError, match="cannot be stored or looked up"):
        list(sessions.summaries(**wanted))  # type: ignore[arg-type]  # one of the two texts


@pytest.mark.parametrize(
    ("first", "last", "seqs"), [(-5, None, [0, 1]), (BEYOND, None, []), (1, BEYOND, [1])]
)
def test_a_range_of_the_log_gives_what_there_is_of_it(
    sessions: Sessions, first: int, last: int | None, seqs: list[int]
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello("a"), hello("b")])

    assert [event.seq for event in sessions.log("s", first=first, last=last)] == seqs


def test_an_expected_seq_beyond_every_log_is_a_conflict(sessions: Sessions) -> None:
    sessions.create("s")

    with pytest.raises(ConflictError):
        sessions.append_batch("s", [hello()], expected_seq=BEYOND)


def test_an_event_id_that_is_no_text_is_refused(sessions: Sessions) -> None:
    sessions.create("s")
    data = hello().data

    with pytest.raises(SessionError, match="5 cannot be an id"):
        sessions.append("s", "user/message", data, {"surfaceOp": "append"}, event_id=5)  # type: ignore[arg-type]  # what a caller without a type checker passes
