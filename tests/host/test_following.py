"""Following a store through its host."""

from itertools import islice

import pytest

from everfold.host.sessions import Sessions
from everfold.session.errors import LosslessError


def test_events_of_a_type_are_followed_in_both_their_forms(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append("s", "session/title", {"title": "one"})
    sessions.append("s", "todo/write", {"todos": []})
    sessions.append("s", "session/title", {"title": "two"}, {"ignorable": True})

    with sessions.subscribe(types=["session/title"]) as notifications:
        found = [each.event.data["title"] for each in islice(notifications, 2)]

    assert found == ["one", "two"]


def test_a_type_that_needs_escaping_is_followed_by_its_plain_name(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append("s", "acme/how?", {"n": 1}, {"ignorable": True})

    with sessions.subscribe(types=["acme/how?"]) as notifications:
        found = next(iter(notifications))

    assert (found.event.type, found.event.data) == ("acme/how?", {"n": 1})


def test_one_type_that_is_no_list_is_refused_and_not_waited_for(sessions: Sessions) -> None:
    with pytest.raises(TypeError, match=r"give a list: types=\['session/title'\]"):
        sessions.subscribe(types="session/title")


def test_a_type_that_no_event_can_have_is_not_waited_for(sessions: Sessions) -> None:
    with pytest.raises(LosslessError, match="type is not valid Unicode"):
        sessions.subscribe(types=["acme/\ud800"])
