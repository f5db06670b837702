"""Exports of the first events of a fork: each is a fork that can be imported (R155, R158, R172, R339)."""

import io
import json

import pytest

from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from everfold.session.deciding import AppendEvent
from everfold.session.frozen import Json
from everfold.session.session import Session
from everfold.store.urls import open_store
from tests.audit.damage import rewrite_row
from tests.host.kit import another, hello


def prefix(sessions: Sessions, session_id: str, upto_seq: int) -> bytes:
    """Return the file of a session's events up to a seq."""
    out = io.BytesIO()
    result = export_session(sessions.store, session_id, out, upto_seq=upto_seq)
    assert result.event_count == out.getvalue().count(b"\n") - 1
    return out.getvalue()


def imported(sessions: Sessions, content: bytes, session_id: str) -> Session:
    """Return the session that a file holds, stored under another id."""
    parts = (sessions.store, sessions.composition, sessions.means)
    import_session([content], *parts, session_id=session_id)
    return sessions.load(session_id)


def grown(sessions: Sessions) -> None:
    """Store `first`, its fork `second` with a cut at 2, and a fork of that, `third`, with a cut at 5."""
    sessions.create("first")
    sessions.append_batch("first", [hello("a"), hello("b"), hello("c")])
    sessions.fork("first", boundary=1, child_id="second")
    sessions.append_batch("second", [hello("d"), hello("e")])
    sessions.fork("second", child_id="third")
    sessions.append_batch("third", [hello("f"), AppendEvent("session/end-seed", {})])


def last_line(content: bytes) -> Json:
    """Return the last record of a file."""
    return json.loads(content.splitlines()[-1])


@pytest.mark.parametrize("upto_seq", range(-1, 8))
def test_every_prefix_of_a_fork_of_a_fork_is_imported_with_its_inherited_part(
    store_url: str, upto_seq: int
) -> None:
    with open_store(store_url) as store:
        sessions = another(store)
        grown(sessions)

        copy = imported(sessions, prefix(sessions, "third", upto_seq), "copy")

        shown = [each["id"] for each in sessions.load("third").messages()]
        length = len([seq for seq in sessions.load("third").nodes if seq <= upto_seq])
        assert [each["id"] for each in copy.messages()] == shown[:length]
        assert copy.inherited_count == min(upto_seq + 1, 5)


def test_a_prefix_behind_the_marker_is_written_as_it_is(store_url: str) -> None:
    with open_store(store_url) as store:
        sessions = another(store)
        grown(sessions)
        whole = prefix(sessions, "third", 7)

        cut = prefix(sessions, "third", 5)

    assert cut == b"".join(whole.splitlines(keepends=True)[:7])


def test_the_marker_of_a_shorter_fork_is_as_old_as_the_fork(store_url: str) -> None:
    with open_store(store_url) as store:
        sessions = another(store)
        grown(sessions)
        created_ms = sessions.header("third")["createdAt"]

        content = prefix(sessions, "third", 0)

    assert last_line(content) == {
        "type": "session/end-seed",
        "seq": 1,
        "time": created_ms,
        "data": {"inherited": True},
    }


def test_c8_what_is_before_a_damaged_marker_can_be_saved_and_imported(store_url: str) -> None:
    with open_store(store_url) as store:
        sessions = another(store)
        grown(sessions)
        rewrite_row(store_url, "second", 4, b"x{")

        copy = imported(sessions, prefix(sessions, "second", 1), "copy")

        assert copy.inherited_count == 2


def test_a_prefix_of_a_session_that_is_no_fork_gets_no_marker(store_url: str) -> None:
    with open_store(store_url) as store:
        sessions = another(store)
        grown(sessions)

        content = prefix(sessions, "first", 0)

    assert last_line(content)["type"] == "user/message"
