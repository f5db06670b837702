"""What was asked for a summary is a row like any other to the commands that read and copy a session."""

import json
from pathlib import Path
from typing import Any

import pytest

from everfold.agent.requests import rebuild_request
from everfold.host.opening import open_sessions
from tests.cli.conftest import Run
from tests.cli.talking import scripted

SPANS = "[plugin.compaction]\nkeep_tokens = 20\nmin_span_tokens = 20\n"
LONG = "The crane at berth four lifts containers of up to forty tonnes. " * 20
SUMMARY = "They described a crane."


@pytest.fixture
def url(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store whose session was summarised."""
    monkeypatch.chdir(tmp_path)
    profile = scripted(tmp_path, {"text": "Yes."}, {"text": "Noted."}, {"text": SUMMARY})
    profile.write_text(profile.read_text() + SPANS)
    url = f"sqlite:///{tmp_path / 'asked.sqlite'}"
    assert run("run", LONG, "--store", url).status == 0
    assert run("run", "Noted?", "--store", url, "--session", "session-1").status == 0
    assert run("compact", "session-1", "--store", url, "--focus", "weights").status == 0
    return url


def asked(run: Run, url: str, session: str = "session-1") -> dict[str, Any]:
    """Return the record of the one request for a summary."""
    outcome = run("log", session, "--store", url, "--type", "compaction/request", "--json")
    (line,) = outcome.out.splitlines()
    record: dict[str, Any] = json.loads(line)
    return record


def test_the_log_shows_it(run: Run, url: str) -> None:
    shown = run("log", "session-1", "--store", url, "--type", "compaction/request").out

    assert shown.split()[0] == str(asked(run, url)["seq"])
    assert "compaction/request" in shown
    assert asked(run, url)["ignorable"] is True
    assert asked(run, url)["data"]["instruction"].endswith("Dwell on this: weights")


def test_an_audit_is_sound_and_counts_the_turns_requests_alone(run: Run, url: str) -> None:
    outcome = run("audit", "session-1", "--store", url, "--json")

    assert outcome.status == 0
    assert json.loads(outcome.out)["sound"] is True
    third = run("show", "session-1", "--store", url, "--request", "3")
    assert "has 2 request(s)" in third.err


def test_a_file_keeps_it(run: Run, url: str, tmp_path: Path) -> None:
    file, other = tmp_path / "session.jsonl", f"sqlite:///{tmp_path / 'other.sqlite'}"

    assert run("export", "session-1", "--store", url, "--output", str(file)).status == 0
    assert run("import", str(file), "--store", other, "--id", "moved").status == 0

    mine, theirs = asked(run, url), asked(run, other, "moved")
    beside = {"eventId", "actor"}
    assert {k: mine[k] for k in mine.keys() - beside} == {
        k: theirs[k] for k in theirs.keys() - beside
    }
    with open_sessions(url) as one, open_sessions(other) as two:
        sent = rebuild_request(one, "session-1", mine["seq"])
        again = rebuild_request(two, "moved", mine["seq"])
    assert (again.header, again.messages) == (sent.header, sent.messages)
