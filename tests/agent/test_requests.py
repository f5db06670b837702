"""Requests of a loop share what they have in common."""

from everfold.agent.requests import RequestBuilder
from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent, message, replacement
from everfold.session.frozen import Json
from everfold.session.growing import Growing

HEADER = {"config": {"provider": "p", "model": "m"}}


def said(number: int) -> Json:
    return {
        "id": f"m{number}",
        "role": "user",
        "source": {"kind": "user"},
        "content": [{"type": "text", "text": f"number {number}"}],
    }


def test_a_request_grows_out_of_the_one_before_until_a_message_is_replaced(sqlite_url: str) -> None:
    with open_sessions(sqlite_url) as sessions:
        name, builder = sessions.create().id, RequestBuilder()
        header = AppendEvent("request/header", {"header": HEADER, "reason": "initial"})
        sessions.append_batch(name, [header, message("user/message", said(1))])
        first = builder.build(sessions.load(name)).messages
        sessions.append_batch(name, [message("user/message", said(2))])
        second = builder.build(sessions.load(name)).messages
        sessions.append_batch(
            name, [replacement("user/message", said(3), start=1, end=1, sources=[1])]
        )
        third = builder.build(sessions.load(name)).messages

    assert isinstance(first, Growing)
    assert isinstance(second, Growing)
    assert isinstance(third, Growing)
    assert [list(each) for each in (first, second, third)] == [
        [said(1)],
        [said(1), said(2)],
        [said(3), said(2)],
    ]
    assert second.continues(first)
    assert not third.continues(second)
    assert third[1] is second[1]
