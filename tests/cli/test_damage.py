"""Damaged sessions, and events that nobody here can read: named, never hidden, never made anew."""

import json
from pathlib import Path

from everfold.host.opening import open_sessions
from everfold.plugins.plugin import Plugin
from everfold.session.deciding import AppendEvent
from everfold.session.ids import version_of
from everfold.session.vocabulary import EventType
from tests.audit.damage import remove_row, rewrite_row
from tests.cli.conftest import Run
from tests.talks import talk


def test_a_damaged_session_is_flagged_and_the_others_are_listed(run: Run, quay: str) -> None:
    """F4."""
    with open_sessions(quay) as sessions:
        for name in ("a", "b", "z"):
            sessions.create(name)
    rewrite_row(quay, "b", 1, b"\x00\x00")

    outcome = run("list", "--store", quay, "--json")

    records = [json.loads(line) for line in outcome.out.splitlines()]
    damaged = [each["session"] for each in records if each["damage"] is not None]
    assert (outcome.status, [each["session"] for each in records]) == (0, ["a", "b", "quay", "z"])
    assert damaged == ["b"]
    assert "DAMAGED" in run("list", "--store", quay).out


def test_a_session_whose_last_event_is_damaged_is_flagged(run: Run, quay: str) -> None:
    rewrite_row(quay, "quay", version_of(13), b"{torn}")

    outcome = run("list", "--store", quay, "--json")

    record = json.loads(outcome.out)
    assert (record["session"], record["events"], record["lastTime"]) == ("quay", 14, None)
    assert record["damage"].startswith("seq 13: ")


def test_a_session_whose_last_answer_cannot_be_put_together_is_flagged(run: Run, quay: str) -> None:
    answer = '{"turn":1,"step":1,"message":{"content":[]},"stream":{"time0":1,"records":[7]}}'
    remove_row(quay, "quay", version_of(13))
    state = f'{{"eventId":"x","time":5,"data":{answer}}}'
    rewrite_row(quay, "quay", version_of(12), state.encode())

    record = json.loads(run("list", "--store", quay, "--json").out)

    assert record["lastTime"] is None
    assert record["damage"].startswith("seq 12: ")
    assert "its stream cannot be put together" in record["damage"]


def test_a_session_without_its_header_is_flagged(run: Run, quay: str) -> None:
    remove_row(quay, "quay", 1)

    record = json.loads(run("list", "--store", quay, "--json").out)

    assert record["damage"].startswith("header: ")


def test_damage_between_header_and_last_event_is_for_an_audit_to_find(run: Run, quay: str) -> None:
    rewrite_row(quay, "quay", version_of(4), b"{torn}")

    listed = json.loads(run("list", "--store", quay, "--json").out)
    audited = run("audit", "quay", "--store", quay)

    assert listed["damage"] is None
    assert audited.status == 1
    assert "quay seq 4: " in audited.out


def test_an_audit_of_all_finds_the_damaged_one(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        talk(sessions, "second")
    remove_row(quay, "second", version_of(4))

    outcome = run("audit", "--all", "--store", quay)

    assert outcome.status == 3
    assert "quay: sound, 14 events\n" in outcome.out
    assert "second: NOT SOUND, 4 of 14 events readable\n" in outcome.out
    assert "second seq 4: " in outcome.out


def test_damage_is_named_by_session_and_seq_and_the_prefix_is_shown(run: Run, quay: str) -> None:
    """C8: no new session, an error that names stream and seq, the prefix can be viewed."""
    rewrite_row(quay, "quay", version_of(8), b"\xff\xfe broken")

    shown = run("show", "quay", "--store", quay, "--json")
    logged = run("log", "quay", "--store", quay, "--json")
    prefix = run("show", "quay", "--at", "7", "--store", quay, "--json")
    audited = run("audit", "quay", "--store", quay)
    listed = run("list", "--store", quay, "--json")

    for outcome in (shown, logged):
        error = json.loads(outcome.err)["error"]
        assert (outcome.status, error["seq"]) == (1, 8)
        assert "'quay'" in error["message"]
    assert len(logged.out.splitlines()) == 8
    assert [each["seq"] for each in json.loads(prefix.out)["messages"]] == [2, 3]
    assert (audited.status, "quay seq 8: " in audited.out) == (1, True)
    assert [json.loads(line)["session"] for line in listed.out.splitlines()] == ["quay"]


def test_c8_what_is_before_the_damage_is_exported_and_imported(
    run: Run, quay: str, tmp_path: Path
) -> None:
    rewrite_row(quay, "quay", version_of(8), b"\xff\xfe broken")
    file = tmp_path / "quay.jsonl"

    whole = run("export", "quay", "--store", quay, "-o", str(file))
    beyond = run("export", "quay", "--store", quay, "-o", str(file), "--at", "14")
    prefix = run("export", "quay", "--store", quay, "-o", str(file), "--at", "7")
    saved = run("import", str(file), "--store", quay, "--id", "saved")

    assert (whole.status, beyond.status) == (1, 1)
    assert "--at 14: the session has events 0 to 13" in beyond.err
    assert prefix.out == f"quay: 8 events to {file}\n"
    assert saved.out == f"imported  {file}: saved, 8 events\n"


def test_damaged_json_inside_whole_bytes_is_named_too(run: Run, quay: str) -> None:
    rewrite_row(quay, "quay", version_of(8), b'{"surfaceOp":"append","eventId":"x", oh}')

    shown = run("show", "quay", "--store", quay)
    resumed = run("resume", "quay", "--store", quay)

    assert shown.status == 1
    assert "session 'quay' cannot be read at seq 8" in shown.err
    assert "`everfold show quay --at 7` shows it as it was before" in shown.err
    assert "sessions.load" not in shown.err
    assert "Traceback" not in shown.err + resumed.err


def test_an_event_of_a_plugin_that_is_not_installed_is_named(run: Run, sqlite_url: str) -> None:
    tides = Plugin("tides", event_types=(EventType("tide/measured"),))
    with open_sessions(sqlite_url, plugins=[tides]) as sessions:
        sessions.create("bay")
        sessions.append_batch("bay", (AppendEvent("tide/measured", {"metres": 3}),))

    shown = run("show", "bay", "--store", sqlite_url, "--json")
    logged = run("log", "bay", "--store", sqlite_url, "--json")

    error = json.loads(shown.err)["error"]
    assert (shown.status, error["code"], error["seq"]) == (1, "unknown-event", 0)
    assert "'tide/measured'" in error["message"]
    assert json.loads(logged.out)["data"] == {"metres": 3}
