"""Reports from the field, group C: fork, restore and resume, in processes of their own."""

import os
import signal
from multiprocessing.connection import Connection

import pytest

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent
from everfold.session.errors import (
    BoundaryError,
    ConflictError,
    CorruptStreamError,
    OpenTurnError,
    SessionExistsError,
)
from everfold.session.ids import version_of
from tests.audit.damage import execute, rewrite_row
from tests.cli.conftest import Run
from tests.domain.kit import view
from tests.field_reports.kit import asks, names, names_elsewhere, result, shown, told, turn
from tests.field_reports.witness import Witness, rows_of
from tests.host.kit import another, hello, pictures, types
from tests.processes import PATIENCE_S, Worker

TURN_EVENTS = 4


def talk(sessions: Sessions, session_id: str, first: int, last: int) -> None:
    """Append the turns `first` to `last`."""
    for number in range(first, last + 1):
        sessions.append_batch(session_id, turn(number))


def turns(*numbers: int) -> list[str]:
    """Return the ids of the messages of these turns."""
    return [f"{role}-{number}" for number in numbers for role in "ua"]


def test_c1_a_fork_holds_and_stores_each_inherited_event_once(
    store_url: str, sessions: Sessions, witness: Witness
) -> None:
    sessions.create("parent")
    talk(sessions, "parent", 1, 75)
    witness.look()

    sessions.fork("parent", boundary=299, child_id="child")

    rows = rows_of(store_url)
    parent = [row for (stream, version), row in rows.items() if stream == "parent" and version > 1]
    child = [row for (stream, version), row in rows.items() if stream == "child" and version > 1]
    assert len(parent) == 300
    assert child[:-1] == parent
    assert child[-1][0] == "session/end-seed"
    assert shown(sessions, "child") == shown(sessions, "parent")


def go_on(url: str, session_id: str, number: int, fork_id: str) -> None:
    """Append a turn, if there is one to append, and fork; the work of a process of its own."""
    with open_sessions(url) as sessions:
        if number:
            talk(sessions, session_id, number, number)
        sessions.fork(session_id, child_id=fork_id)


def resume(url: str, session_id: str) -> list[str]:
    """Take a session over and return what the model sees; the work of a process of its own."""
    with open_sessions(url) as sessions:
        return [str(each["id"]) for each in sessions.resume(session_id).messages()]


def test_c2_child_and_grandchild_have_the_whole_history_in_new_processes(
    store_url: str, sessions: Sessions
) -> None:
    sessions.create("parent")
    Worker(go_on, store_url, "parent", 1, "child").result()
    Worker(go_on, store_url, "child", 2, "grandchild").result()
    Worker(go_on, store_url, "grandchild", 0, "great-grandchild").result()

    seen = {
        name: Worker(resume, store_url, name).result()
        for name in ("child", "grandchild", "great-grandchild")
    }

    assert seen == dict.fromkeys(seen, turns(1, 2))


def test_c3_a_fork_of_a_fork_starts_at_the_forks_own_end(
    store_url: str, sessions: Sessions
) -> None:
    sessions.create("a")
    talk(sessions, "a", 1, 10)
    sessions.fork("a", boundary=5 * TURN_EVENTS - 1, child_id="b")
    talk(sessions, "b", 101, 103)

    Worker(go_on, store_url, "b", 0, "c").result()

    assert names(sessions, "c") == turns(1, 2, 3, 4, 5, 101, 102, 103)


def test_c4_a_fork_inside_a_tool_call_is_refused_and_one_before_it_is_not(
    store_url: str, sessions: Sessions, witness: Witness
) -> None:
    """The case wants a made-up answer in the child; here the cut is refused, and says where to cut."""
    sessions.create("parent")
    talk(sessions, "parent", 1, 1)
    sessions.append_batch("parent", asks("c1", turn=2))
    witness.look()

    with pytest.raises(OpenTurnError, match="fork at a seq before it") as caught:
        sessions.fork("parent", child_id="child")
    assert caught.value.seq is not None
    sessions.fork("parent", boundary=caught.value.seq - 1, child_id="child")
    sessions.append_batch("parent", [result("c1")])

    assert names(sessions, "child") == turns(1)
    assert names(sessions, "parent")[-2:] == ["a-2", "r-c1"]


def talk_alternately(url: str, session_id: str, pipe: Connection) -> list[int]:
    """Append a turn each time a number comes through the pipe; return the seqs of the turns' starts."""
    seqs = []
    with open_sessions(url) as sessions:
        sessions.load("parent")
        if session_id != "parent":
            sessions.fork("parent", child_id=session_id)
        pipe.send("ready")
        while number := pipe.recv():
            seqs.append(sessions.append_batch(session_id, turn(number))[0].seq)
            pipe.send(number)
    return seqs


def test_c5_parent_and_child_go_on_in_two_processes(store_url: str, sessions: Sessions) -> None:
    sessions.create("parent")
    talk(sessions, "parent", 1, 1)
    hosts = [
        Worker(talk_alternately, store_url, name, reports=True) for name in ("parent", "child")
    ]
    assert [told(host.pipe) for host in hosts] == ["ready", "ready"]

    for number in (11, 12, 13):
        for host in hosts:
            host.pipe.send(number)
            assert told(host.pipe) == number
    seqs = []
    for host in hosts:
        host.pipe.send(0)
        seqs.append(host.result())

    assert seqs == [[4, 8, 12], [5, 9, 13]]
    assert names(sessions, "parent") == names(sessions, "child") == turns(1, 11, 12, 13)


def go_back_and_die(url: str, pipe: Connection) -> None:
    """Go back to the end of the third turn, say so, and be killed."""
    with open_sessions(url) as sessions:
        sessions.fork("s", boundary=3 * TURN_EVENTS - 1, child_id="back")
        pipe.send("went back")
        os.kill(os.getpid(), signal.SIGKILL)


def test_c6_going_back_survives_a_kill_and_can_be_taken_back(
    store_url: str, sessions: Sessions, everfold: Run
) -> None:
    """To go back is to fork at a past event: what came after stays in the log that it is a fork of."""
    sessions.create("s")
    talk(sessions, "s", 1, 5)
    killed = Worker(go_back_and_die, store_url, reports=True)
    assert told(killed.pipe) == "went back"
    killed.process.join(PATIENCE_S)

    resumed = Worker(resume, store_url, "back").result()
    sessions.fork("s", boundary=5 * TURN_EVENTS - 1, child_id="forward")

    assert resumed == turns(1, 2, 3)
    assert names(sessions, "s") == names(sessions, "forward") == turns(1, 2, 3, 4, 5)
    audited = everfold("audit", "s", "--store", store_url)
    assert audited.out.startswith("s: sound, 20 events\n")
    with pytest.raises(BoundaryError):
        sessions.fork("back", boundary=5 * TURN_EVENTS - 1)


def test_c7_an_answer_to_what_was_asked_later_does_not_reach_an_earlier_line(
    sessions: Sessions,
) -> None:
    sessions.create("s")
    talk(sessions, "s", 1, 3)
    asked = sessions.append("s", "approval/asked", {"id": "q-4", "toolName": "run"})
    sessions.fork("s", boundary=2 * TURN_EVENTS - 1, child_id="back")
    answer = {"id": "q-4", "outcome": "allowed-once"}

    with pytest.raises(ConflictError):
        sessions.append("back", "approval/decided", answer, expected_seq=asked.seq + 1)
    talk(sessions, "back", 33, 33)

    assert names(sessions, "back") == turns(1, 2, 33)
    assert not [each for each in types(sessions, "back") if each.startswith("approval/")]


BROKEN_STATES = {
    "no JSON at all": b"\xff\xfe broken",
    "cut off": b'{"eventId":"x","time":1,"data":{"id":',
    "broken inside": b'{"eventId":"x","time":1,"data":{oh}}',
    "no data": b'{"eventId":"x","time":1}',
    "not UTF-8": b'{"eventId":"x","time":1,"data":{"id":"\xff"}}',
    "nothing": b"",
}


@pytest.mark.parametrize("state", BROKEN_STATES.values(), ids=BROKEN_STATES.keys())
def test_c8_an_undecodable_event_is_named_and_nothing_takes_its_place(
    store_url: str, sessions: Sessions, witness: Witness, state: bytes
) -> None:
    sessions.create("s")
    talk(sessions, "s", 1, 3)
    witness.damaged.add("s")
    rewrite_row(store_url, "s", version_of(5), state)
    host = another(sessions.store)

    for open_session in (host.load, host.resume):
        with pytest.raises(CorruptStreamError, match="'s' cannot be read at seq 5") as caught:
            list(open_session("s").messages())
        assert caught.value.seq == 5

    with pytest.raises(SessionExistsError):
        host.create("s")
    assert [each.stream_id for each in host.summaries()] == ["s"]
    assert names(host, "s", at=4) == turns(1)


def test_c8_all_that_is_derived_can_be_made_again_from_the_log(store_url: str) -> None:
    with open_sessions(store_url, snapshot_every=10) as sessions:
        sessions.create("s")
        sessions.append_batch("s", [pictures("u", 2)])
        talk(sessions, "s", 1, 10)
        sessions.append("s", "image/offload", {"targets": [{"seq": 0, "imageIndexes": [1]}]})
        before = view(sessions.load("s"))
        snapshot = sessions.store.load_snapshot("s")
        assert snapshot is not None

        execute(store_url, "DELETE FROM stored_snapshots")
        assert sessions.store.load_snapshot("s") is None
        again = another(sessions.store, snapshot_every=10)
        rebuilt = view(again.load("s"))

        assert rebuilt == before
        made = sessions.store.load_snapshot("s")
        assert made is not None
        assert made.version == 43


def test_c9_every_event_of_a_child_names_the_child(store_url: str, sessions: Sessions) -> None:
    sessions.create("parent")
    talk(sessions, "parent", 1, 2)
    sessions.fork("parent", child_id="child")

    told_by = {
        "log": {event.originator_id for event in sessions.log("child")},
        "load": {sessions.load("child").id},
        "header": {sessions.header("child")["id"]},
        "list": {s.stream_id for s in sessions.summaries() if s.created.data["isSeeded"]},
        "subscription": {n.event.originator_id for n in sessions.store.read_all()[-10:]},
    }

    assert told_by == {way: {"child"} for way in told_by}
    assert sessions.header("child")["parentSession"] == "parent"
    assert b"child" not in b"".join(state for _topic, state in rows_of(store_url).values()).replace(
        b'"id":"child"', b""
    )


def serve(url: str, pipe: Connection) -> list[object]:
    """Hold a session in memory until told that it was repaired; return what the next request shows."""
    with open_sessions(url) as sessions:
        sessions.load("s").messages()
        pipe.send("in memory")
        pipe.recv()
        sessions.append_batch("s", [hello("next")])
        return [
            [block.get("offloaded", False) for block in each["content"]]
            for each in sessions.load("s").messages()
        ]


def repair(url: str) -> None:
    """Omit the first image, as an operator would from another process."""
    with open_sessions(url) as sessions:
        offload = AppendEvent("image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})
        sessions.append_batch("s", [offload])


def test_c10_a_server_sees_what_another_process_repaired(
    store_url: str, sessions: Sessions
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [pictures("u", 2)])
    server = Worker(serve, store_url, reports=True)
    assert told(server.pipe) == "in memory"

    Worker(repair, store_url).result()
    server.pipe.send("repaired")

    assert server.result() == [[True, False], [False]]
    assert Worker(names_elsewhere, store_url, "s").result() == ["u", "next"]
