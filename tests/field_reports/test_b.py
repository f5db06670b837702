"""Reports from the field, group B: two processes, one session."""

import sqlite3
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.session.deciding import AppendEvent, DecisionMeans, replacement
from everfold.session.errors import ConflictError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session
from everfold.store.contract.follower import Follower
from tests.cli.conftest import Run
from tests.domain.kit import text, user
from tests.field_reports.kit import (
    append_elsewhere,
    asks,
    names,
    names_elsewhere,
    result,
    told,
    turn,
)
from tests.field_reports.witness import Witness
from tests.host.kit import hello, types
from tests.processes import Worker, run_at_once


def resume_at(url: str, call_id: str, pipe: Connection) -> str:
    """Read the session, wait until told, then append a turn with a call where the log ended then."""
    with open_sessions(url) as sessions:
        seen = sessions.load("s").next_seq
        pipe.send(seen)
        pipe.recv()
        try:
            sessions.append_batch("s", asks(call_id, turn=seen), expected_seq=seen)
        except ConflictError as conflict:
            return f"conflict: {[event.type for event in conflict.appended]}"
        return "stored"


def test_b1_of_two_hosts_that_read_the_same_history_one_goes_on(
    store_url: str, sessions: Sessions
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello(f"u-{number}") for number in range(10)])
    hosts = [Worker(resume_at, store_url, f"c-{name}", reports=True) for name in "pq"]
    assert [told(host.pipe) for host in hosts] == [10, 10]

    outcomes = []
    for host in hosts:
        host.pipe.send("go on")
        outcomes.append(host.result())

    others = "['turn/start', 'step/start', 'user/message', 'assistant/message', 'tool/call']"
    assert outcomes == ["stored", f"conflict: {others}"]
    calls = [e.data["callId"] for e in sessions.log("s") if e.type == "tool/call"]
    assert calls == ["c-p"]
    sessions.append_batch("s", [result("c-p")])
    assert names(sessions, "s")[-2:] == ["a-10", "r-c-p"]


def compact(url: str, pipe: Connection) -> int:
    """Replace all messages by a summary; the summariser takes until it is told to go on."""
    asked = 0

    def summary(session: Session) -> list[AppendEvent]:
        nonlocal asked
        asked += 1
        nodes = [node for node in session.nodes if node < 5]
        if asked == 1:
            pipe.send("summarising")
            pipe.recv()
        data = user("summary", text("five greetings"))
        return [replacement("user/message", data, start=0, end=4, sources=nodes)]

    with open_sessions(url) as sessions:
        sessions.append_batch("s", summary)
    return asked


def test_b2_a_message_that_comes_during_a_compaction_is_taken(
    store_url: str, sessions: Sessions
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello(f"u-{number}") for number in range(5)])
    compacting = Worker(compact, store_url, reports=True)
    assert told(compacting.pipe) == "summarising"

    seq = Worker(append_elsewhere, store_url, "s", "u-meanwhile", "hello?").result()
    compacting.pipe.send("done")

    assert (seq, compacting.result()) == (5, 2)
    assert names(sessions, "s") == ["summary", "u-meanwhile"]
    assert types(sessions, "s") == ["user/message"] * 7


def test_b3_events_of_one_instant_come_out_in_order_everywhere(
    store_url: str, everfold: Run, tmp_path: Path
) -> None:
    frozen = DecisionMeans(clock=lambda: 7, new_id=iter(map(str, range(1_000))).__next__)
    wanted = [f"u-{number}" for number in range(400)]
    with open_sessions(store_url, means=frozen) as sessions:
        sessions.create("s")
        sessions.append_batch("s", [hello(name) for name in wanted[:200]])
        for name in wanted[200:]:
            sessions.append_batch("s", [hello(name)])

        with Follower(sessions.store) as follower:
            followed = [n.event for n in follower.wait_for(401)][1:]
        sessions.fork("s", child_id="child")
        export_session(sessions.store, "s", tmp_path / "s.jsonl")
        ways = {
            "log": [event.data["id"] for event in sessions.log("s")],
            "fold": names(sessions, "s"),
            "fork": names(sessions, "child"),
            "subscription": [event.data["id"] for event in followed],
        }
    everfold("import", str(tmp_path / "s.jsonl"), "--id", "again", "--store", store_url)
    ways["import"] = Worker(names_elsewhere, store_url, "again").result()

    assert ways == dict.fromkeys(ways, wanted)


QUEUED = 50


def claim_all(url: str, worker: str) -> list[int]:
    """Take queued inputs until none is left; return those that this worker got."""
    got: list[int] = []

    def take(session: Session) -> list[AppendEvent]:
        taken = session.next_seq - 1
        if taken >= QUEUED:
            return []
        splice = {"target": "next-turn", "start": 0, "removedCount": 1, "inserted": []}
        return [AppendEvent("agent/inbox/spliced", {**splice, "worker": worker, "taken": taken})]

    with open_sessions(url) as sessions:
        while stored := sessions.append_batch("s", take):
            got.append(stored[0].data["taken"])
    return got


def test_b5_each_queued_input_is_claimed_by_one_worker(store_url: str, sessions: Sessions) -> None:
    sessions.create("s")
    inputs: list[Json] = [user(f"q-{number}", text("do it")) for number in range(QUEUED)]
    queue = {"target": "next-turn", "start": 0, "removedCount": 0, "inserted": inputs}
    sessions.append("s", "agent/inbox/spliced", queue)

    claims = run_at_once(claim_all, [(store_url, f"w-{number}") for number in range(8)])

    assert sorted(item for claim in claims for item in claim) == list(range(QUEUED))
    assert [e.data["taken"] for e in sessions.log("s", first=1)] == list(range(QUEUED))


def run_turn(url: str, name: str) -> list[str]:
    """Run a whole turn in four appends, unless one is open; return what its user saw."""
    with open_sessions(url) as sessions:
        session = sessions.load("s")
        start, question, answer, end = turn(session.next_seq, f"from {name}")
        if session.is_turn_open:
            return []
        try:
            sessions.append_batch("s", [start], expected_seq=session.next_seq)
        except ConflictError:
            return []
        for event in (question, answer, end):
            sessions.append_batch("s", [event])
        return [f"u-{session.next_seq}", f"a-{session.next_seq}"]


def test_b8_nothing_that_a_user_saw_is_missing_after_a_restart(
    store_url: str, sessions: Sessions
) -> None:
    sessions.create("s")

    saw = run_at_once(run_turn, [(store_url, name) for name in "pqr"])

    answers = sorted(each for each in saw if each)
    assert answers != []
    shown = Worker(names_elsewhere, store_url, "s").result()
    assert shown == [name for answer in answers for name in answer]
    assert types(sessions, "s") == [event.type for event in turn(0)] * len(answers)


def change_slowly(url: str, operation: str, pipe: Connection) -> str:
    """Change visible history; stop between the decision and the commit until told to go on."""
    waits = [True]

    def pause(_session: Session, _events: Sequence[Recorded]) -> None:
        if waits:
            waits.clear()
            pipe.send("decided")
            pipe.recv()

    def prune(session: Session) -> list[AppendEvent]:
        nodes = list(session.nodes)[:3]
        data = user("pruned", text("…"))
        return [replacement("user/message", data, start=0, end=nodes[-1], sources=nodes)]

    with open_sessions(url) as sessions:
        sessions.publications.append(pause)
        if operation == "prune":
            sessions.append_batch("s", prune)
        elif operation == "repair":
            sessions.resume("s")
        else:
            sessions.append("s", "image/offload", {"targets": [{"seq": 3, "imageIndexes": [0]}]})
        return str(sessions.load("s").next_seq)


@pytest.mark.parametrize("operation", ["prune", "repair", "omission"])
def test_b9_what_another_process_stored_meanwhile_stays(
    store_url: str, sessions: Sessions, witness: Witness, operation: str
) -> None:
    sessions.create("s")
    image = {"type": "image", "attachment": {"attachmentId": "sha256:" + "0" * 64}}
    sessions.append_batch(
        "s", [*(hello(f"u-{n}") for n in range(3)), hello("u-3", text("see"), image)]
    )
    witness.look()
    changing = Worker(change_slowly, store_url, operation, reports=True)
    assert told(changing.pipe) == "decided"
    seq = Worker(append_elsewhere, store_url, "s", "u-42", "hello-42").result()

    changing.pipe.send("go on")
    changing.result()

    assert seq == 4
    assert [e.data["id"] for e in sessions.log("s", first=4, last=4)] == ["u-42"]
    assert "u-42" in names(sessions, "s")


def test_b9_an_import_never_replaces_a_session(
    store_url: str, sessions: Sessions, everfold: Run, tmp_path: Path
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello("before")])
    export_session(sessions.store, "s", tmp_path / "s.jsonl")
    sessions.append_batch("s", [hello("after", text("hello-42"))])

    outcome = everfold("import", str(tmp_path / "s.jsonl"), "--store", store_url)

    assert outcome.status == 1
    assert "'s' is taken" in outcome.out
    assert names(sessions, "s") == ["before", "after"]


def test_b11_a_session_that_is_copied_by_sqlites_own_backup_is_whole(
    sqlite_url: str, tmp_path: Path
) -> None:
    with open_sessions(sqlite_url) as sessions:
        sessions.create("s")
        source = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
        copy = sqlite3.connect(tmp_path / "copy.sqlite")
        sessions.append_batch("s", turn(1))
        source.backup(copy)
        sessions.append_batch("s", turn(5))
        source.close()
        copy.close()

    with open_sessions(f"sqlite:///{tmp_path / 'copy.sqlite'}") as backed_up:
        assert names(backed_up, "s") == ["u-1", "a-1"]
