"""Where a fork may cut: the boundaries of turns, however they are marked."""

import pytest

from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent
from everfold.session.errors import OpenTurnError
from tests.host.kit import hello, types

PASSED_OVER = {"ignorable": True}


def test_an_ignorable_turn_start_opens_a_turn_r48_r169(sessions: Sessions) -> None:
    sessions.create("s")
    start = AppendEvent("turn/start", {"turn": 1}, PASSED_OVER)
    sessions.append_batch("s", [start, hello()])

    with pytest.raises(OpenTurnError, match="starts at seq 0"):
        sessions.fork("s", child_id="child")


def test_an_ignorable_turn_end_closes_a_turn_r48_r170(sessions: Sessions) -> None:
    sessions.create("s")
    end = AppendEvent("turn/end", {"turn": 1}, PASSED_OVER)
    sessions.append_batch("s", [AppendEvent("turn/start", {"turn": 1}), end])

    sessions.fork("s", child_id="child")

    assert types(sessions, "child") == ["turn/start", "turn/end", "session/end-seed"]
