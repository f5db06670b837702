"""Taking a session over after a crash, and the field reports on fork, restore and resume (group C)."""

import threading

import pytest

from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import (
    BoundaryError,
    OpenTurnError,
    SessionExistsError,
    SessionNotFoundError,
    UnknownEventError,
)
from everfold.session.ports import SessionStore
from everfold.session.vocabulary import EventType
from tests.domain.kit import assistant, text, tool_result, view
from tests.host.kit import another, hello, pictures, turn, types


def call(call_id: str) -> dict[str, object]:
    """Return a tool-call block."""
    return {"type": "tool-call", "id": call_id, "name": "run", "arguments": "{}"}


def open_turn(call_ids: tuple[str, ...], started: tuple[str, ...]) -> list[AppendEvent]:
    """Return a turn that was interrupted while these calls ran."""
    advertised = assistant("a", *(call(call_id) for call_id in call_ids))
    return [
        AppendEvent("turn/start", {"turn": 1}),
        AppendEvent("step/start", {"turn": 1, "step": 1}),
        hello(),
        message("assistant/message", advertised),
        *(
            AppendEvent(
                "tool/call",
                {"turn": 1, "step": 1, "callId": each, "name": "run", "arguments": "{}"},
            )
            for each in started
        ),
    ]


def test_a_crash_inside_a_tool_is_answered_once_and_for_all(
    store: SessionStore, sessions: Sessions
) -> None:
    """D8, R322 to R332: the answer is a stored event, written once; its wording says unknown."""
    sessions.create("s")
    sessions.append_batch("s", open_turn(("c7", "c8"), started=("c7",)))

    another(store).resume("s")
    another(store).resume("s")

    events = list(sessions.log("s"))
    results = [event for event in events if event.type == "tool/result"]
    assert [event.data["error"]["code"] for event in results] == [
        "TOOL_OUTCOME_UNKNOWN",
        "TOOL_NOT_STARTED",
    ]
    assert "unknown" in results[0].data["message"]["content"][0]["content"][0]["text"]
    assert types(sessions, "s")[-3:] == ["step/end", "turn/end", "session/end-seed"]
    assert events[-2].data["reason"] == {"kind": "interrupted"}


def test_resuming_a_closed_session_only_marks_it(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", turn(1))

    resumed = sessions.resume("s")
    sessions.resume("s")

    assert types(sessions, "s") == ["turn/start", "user/message", "turn/end", "session/end-seed"]
    assert resumed.next_seq == 4


def test_the_next_turn_works_after_a_resume(store: SessionStore, sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", open_turn(("c1",), started=("c1",)))
    host = another(store)

    host.resume("s")
    host.append_batch("s", turn(2))

    assert not host.load("s").is_turn_open


def test_a_fork_holds_each_inherited_event_once(sessions: Sessions) -> None:
    """C1."""
    sessions.create("parent")
    for number in range(100):
        sessions.append_batch("parent", turn(number + 1))

    sessions.fork("parent", child_id="child")

    child = [event.record() for event in sessions.log("child")]
    assert child[:-1] == [event.record() for event in sessions.log("parent")]
    assert child[-1]["type"] == "session/end-seed"
    assert sessions.load("child").messages() == sessions.load("parent").messages()


def test_a_child_and_a_grandchild_keep_the_history_when_opened_again(
    store: SessionStore, sessions: Sessions
) -> None:
    """C2."""
    sessions.create("parent")
    sessions.append_batch("parent", turn(1))
    sessions.fork("parent", child_id="child")
    sessions.append_batch("child", turn(2))
    sessions.fork("child", child_id="grandchild")

    shown = [m["id"] for m in another(store).resume("grandchild").messages()]

    assert [m["id"] for m in another(store).resume("child").messages()] == ["u-1", "u-2"]
    assert shown == ["u-1", "u-2"]


def test_a_fork_of_a_fork_goes_on_from_the_forks_end(sessions: Sessions) -> None:
    """C3, R172."""
    sessions.create("a")
    for number in range(10):
        sessions.append_batch("a", turn(number + 1))
    sessions.fork("a", boundary=14, child_id="b")
    for number in range(3):
        sessions.append_batch("b", turn(number + 101))

    sessions.fork("b", child_id="c")

    child = sessions.load("c")
    wanted = [f"u-{n}" for n in (1, 2, 3, 4, 5, 101, 102, 103)]
    assert [m["id"] for m in child.messages()] == wanted
    assert child.inherited_count == sessions.load("b").next_seq


def test_a_fork_inside_a_tool_call_is_refused_and_the_parent_goes_on(sessions: Sessions) -> None:
    """C4: the cut is refused by name; the parent gets its result later."""
    sessions.create("parent")
    sessions.append_batch("parent", open_turn(("c1",), started=("c1",)))

    with pytest.raises(OpenTurnError, match="fork at a seq before it") as caught:
        sessions.fork("parent", child_id="child")
    sessions.append_batch("parent", [message("tool/result", tool_result("c1", text("done")))])

    assert caught.value.seq == 0
    assert types(sessions, "parent")[-1] == "tool/result"
    with pytest.raises(SessionNotFoundError):
        sessions.load("child")


def test_parent_and_child_go_on_apart(store: SessionStore, sessions: Sessions) -> None:
    """C5, R173."""
    sessions.create("parent")
    sessions.append_batch("parent", [pictures("u", 2)])
    other = another(store)
    other.fork("parent", child_id="child")

    for number in range(3):
        sessions.append_batch("parent", turn(number + 1))
        other.append_batch("child", turn(number + 11))
    sessions.append("parent", "image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})

    child = sessions.load("child")
    assert [m["id"] for m in child.messages()] == ["u", "u-11", "u-12", "u-13"]
    assert child.content_generation == 0
    assert sessions.load("parent").content_generation == 1


def test_an_undecodable_event_is_named_and_the_prefix_stays_readable(
    store: SessionStore, sessions: Sessions
) -> None:
    """C8: see also the store's own tests; here a required type that this build does not know."""
    sessions.create("s")
    sessions.append_batch("s", turn(1))
    composition = another(store).composition
    composition.declare([EventType("acme/required")])
    knowing = Sessions(store, composition)
    knowing.append("s", "acme/required", {"n": 1})

    with pytest.raises(UnknownEventError, match="acme/required") as caught:
        another(store).load("s")

    assert caught.value.seq == 3
    assert len(another(store).load("s", at=2).messages()) == 1
    assert [summary.stream_id for summary in sessions.summaries()] == ["s"]


def test_a_fork_names_itself_and_its_parent(sessions: Sessions) -> None:
    """C9, R171."""
    sessions.create("parent", cwd="/srv", agentPreset="quick")
    sessions.append_batch("parent", turn(1))

    child = sessions.load(sessions.fork("parent", child_id="child"))

    header = {name: value for name, value in child.header.items() if name != "createdAt"}
    assert header == {
        "version": 3,
        "id": "child",
        "isSeeded": True,
        "parentSession": "parent",
        "cwd": "/srv",
    }
    assert {event.originator_id for event in sessions.log("child")} == {"child"}


def test_a_host_notices_what_another_process_repaired(
    store: SessionStore, sessions: Sessions
) -> None:
    """C10."""
    sessions.create("s")
    sessions.append_batch("s", [pictures("u", 2)])
    sessions.load("s")

    offload = {"targets": [{"seq": 0, "imageIndexes": [0]}]}
    another(store).append("s", "image/offload", offload)

    message_now = sessions.load("s").messages()[0]
    assert message_now["content"][0]["offloaded"] is True


@pytest.mark.parametrize("boundary", [-1, 0.5, 3, True, "1", 2**53])
def test_a_bad_boundary_leaves_nothing_behind(
    store: SessionStore, sessions: Sessions, boundary: object
) -> None:
    """R168."""
    sessions.create("s")
    sessions.append_batch("s", turn(1))

    with pytest.raises(BoundaryError):
        sessions.fork("s", boundary=boundary, child_id="child")

    assert store.version("child") == 0


def test_the_order_of_a_forks_checks_is_id_source_boundary(sessions: Sessions) -> None:
    """R167."""
    sessions.create("s")

    with pytest.raises(SessionExistsError):
        sessions.fork("nobody", boundary=99, child_id="s")
    with pytest.raises(SessionNotFoundError):
        sessions.fork("nobody", boundary=99, child_id="child")


def test_counted_forks_at_once_get_different_ids(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", turn(1))
    ids: list[str] = []

    def fork() -> None:
        ids.append(sessions.fork("s"))

    threads = [threading.Thread(target=fork) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(ids) == [f"session-{number}" for number in range(1, 6)]


def test_restored_as_of_a_seq_goes_on_as_a_fork(sessions: Sessions) -> None:
    """C6: going back is a fork at that point; what came after stays in the parent's log."""
    sessions.create("s")
    for number in range(5):
        sessions.append_batch("s", turn(number + 1))

    back = sessions.fork("s", boundary=8, child_id="back")

    assert [m["id"] for m in sessions.load(back).messages()] == ["u-1", "u-2", "u-3"]
    assert view(sessions.load("s", at=8))["messages"] == view(sessions.load(back))["messages"]
    assert len(types(sessions, "s")) == 15
