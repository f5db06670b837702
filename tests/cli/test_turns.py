"""What `show` and `audit` tell of a turn that is open, failed or was cancelled."""

import json

import pytest

from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json
from tests.cli.conftest import Run
from tests.cli.talking import crashed
from tests.talks import assistant, user

START = (AppendEvent("turn/start", {"turn": 1}), AppendEvent("step/start", {"turn": 1, "step": 1}))
OPEN = (
    "turn 1 is open since seq 0; if the process that ran it is gone, "
    "`everfold chat broken --resume` closes it and goes on"
)


def ended(url: str, reason: Json, *, is_interrupted: bool = False) -> None:
    answer = assistant("a-1", {"type": "text", "text": "one two"})
    facts = {"interrupted": True} if is_interrupted else {}
    end = AppendEvent("turn/end", {"turn": 1, "reason": reason})
    with open_sessions(url) as sessions:
        sessions.create("told")
        asked = user("u-1", {"type": "text", "text": "count"})
        spoken = message("assistant/message", {**answer.data, **facts})
        step_end = AppendEvent("step/end", {"turn": 1, "step": 1})
        sessions.append_batch("told", (*START, asked, spoken, step_end, end))


def test_show_says_that_a_turn_is_open_and_how_to_go_on(run: Run, sqlite_url: str) -> None:
    crashed(sqlite_url)

    shown = run("show", "broken", "--store", sqlite_url)
    record = json.loads(run("show", "broken", "--store", sqlite_url, "--json").out)

    assert shown.out.splitlines()[-1] == OPEN
    assert record["lastTurn"] == {"turn": 1, "state": "open", "seq": 0}


def test_show_before_the_turn_says_nothing_of_it(run: Run, quay_file: str) -> None:
    outcome = run("show", "quay", "--store", quay_file)

    assert outcome.out.splitlines()[-1].endswith("omitted")


@pytest.mark.parametrize("options", [(), ("--original",)])
def test_an_answer_that_broke_off_is_marked(
    run: Run, sqlite_url: str, options: tuple[str, ...]
) -> None:
    ended(sqlite_url, {"kind": "aborted"}, is_interrupted=True)

    outcome = run("show", "told", "--store", sqlite_url, *options)

    assert "[3] assistant  (interrupted: the answer is not whole)\n    one two\n" in outcome.out
    assert outcome.out.endswith("turn 1 has no whole answer, it was cancelled (seq 5)\n")


def test_show_says_why_the_last_turn_failed(run: Run, sqlite_url: str) -> None:
    error = {"code": "AUTH", "message": "no\x1b such key"}
    ended(sqlite_url, {"kind": "error", "error": error})

    outcome = run("show", "told", "--store", sqlite_url)

    said = "turn 1 has no whole answer, it failed: AUTH: no\\x1b such key (seq 5)\n"
    assert outcome.out.endswith(said)


def test_a_completed_turn_has_no_mark(run: Run, sqlite_url: str) -> None:
    ended(sqlite_url, {"kind": "completed"})

    outcome = run("show", "told", "--store", sqlite_url)
    record = json.loads(run("show", "told", "--store", sqlite_url, "--json").out)

    assert outcome.out.endswith("2 messages, 0 images, 0 omitted\n")
    assert record["lastTurn"] == {"turn": 1, "state": "completed", "seq": 5}
    assert "interrupted" not in record["messages"][1]


def test_a_count_of_the_last_messages_says_what_it_counts(run: Run, quay_file: str) -> None:
    outcome = run("show", "quay", "--last", "1", "--store", quay_file)

    last = outcome.out.splitlines()[-1]
    assert last == "in what is shown here: 1 message, 0 images, 0 omitted"


@pytest.mark.parametrize("which", [("broken",), ("--all",)])
def test_audit_notes_that_a_turn_is_open_and_finds_the_session_sound(
    run: Run, sqlite_url: str, which: tuple[str, ...]
) -> None:
    crashed(sqlite_url)

    outcome = run("audit", *which, "--store", sqlite_url)

    assert outcome.status == 0
    assert "broken: sound, 3 events\n  note: a turn is open since seq 0; " in outcome.out
    assert "`everfold chat broken --resume` closes it and goes on\n" in outcome.out


def test_audit_tells_an_open_turn_in_json_where_there_is_one(run: Run, sqlite_url: str) -> None:
    crashed(sqlite_url)
    ended(sqlite_url, {"kind": "completed"})

    outcome = run("audit", "--all", "--json", "--store", sqlite_url)

    sessions = {each["session"]: each for each in json.loads(outcome.out)["sessions"]}
    assert sessions["broken"]["openTurnSeq"] == 0
    assert "openTurnSeq" not in sessions["told"]
