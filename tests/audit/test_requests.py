"""What the model was shown at each request, from the log alone."""

import pytest

from everfold.audit.requests import Request, requests
from everfold.host.sessions import Sessions
from everfold.llm.images import images, is_omitted
from everfold.session.deciding import AppendEvent
from everfold.session.errors import SessionNotFoundError
from tests.talks import FAILURE, HEADER, assistant, talk, text, user


def found(sessions: Sessions, session_id: str = "quay") -> list[Request]:
    return list(requests(sessions.store, session_id, sessions.composition))


def test_each_settlement_is_a_request(sessions: Sessions) -> None:
    talk(sessions)

    numbered = [(each.number, each.header_seq, each.settled_seq) for each in found(sessions)]

    assert numbered == [(1, 4, 5), (2, 7, 8), (3, 7, 12)]


def test_a_request_shows_the_messages_as_of_its_settlement(sessions: Sessions) -> None:
    talk(sessions)

    shown = [[seq for seq, _message in each.messages()] for each in found(sessions)]

    assert shown == [[2, 3], [2, 3], [2, 3, 8, 11]]


def test_an_omission_shows_from_the_next_request_on(sessions: Sessions) -> None:
    talk(sessions)

    omitted = [
        [is_omitted(image) for image in images(dict(each.messages())[3]["content"])]
        for each in found(sessions)
    ]

    assert omitted == [[False], [True], [True]]


def test_a_failed_request_tells_its_failure(sessions: Sessions) -> None:
    talk(sessions)

    failures = [each.failure for each in found(sessions)]

    assert failures == [FAILURE, None, None]


def test_each_request_equals_the_session_as_of_its_last_event(sessions: Sessions) -> None:
    talk(sessions)

    for each in found(sessions):
        session = sessions.load("quay", at=each.seq)
        assert each.messages() == list(session.messages().items())


def test_a_request_that_nothing_settled_is_told(sessions: Sessions) -> None:
    talk(sessions)
    header = {"header": HEADER, "reason": "resume"}
    sessions.append_batch(
        "quay", (user("u-2", text("and now?")), AppendEvent("request/header", header))
    )

    last = found(sessions)[-1]

    assert (last.number, last.header_seq, last.settled_seq, last.failure) == (4, 15, None, None)
    assert [seq for seq, _message in last.messages()] == [2, 3, 8, 11, 12, 14]


def test_a_request_without_any_header_is_told(sessions: Sessions) -> None:
    sessions.create("bare")
    sessions.append_batch("bare", (user("u", text("hi")), assistant("a", text("hello"))))

    (only,) = found(sessions, "bare")

    assert (only.number, only.header, only.settled_seq) == (1, None, 1)


def test_the_header_in_force_is_given(sessions: Sessions) -> None:
    talk(sessions)

    headers = [each.header for each in found(sessions)]

    assert headers == [HEADER, HEADER, HEADER]


def test_an_unknown_session_is_refused(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFoundError):
        found(sessions, "nowhere")
