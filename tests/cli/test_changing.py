"""fork, resume, delete, import and export, on both databases."""

import json
import stat
from pathlib import Path

import pytest

from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent
from tests.cli.conftest import Run
from tests.talks import assistant, text, user

TURN = {"turn": 2, "step": 1}


def broken_off(url: str) -> None:
    """Leave a turn open, with a tool call that was started."""
    call = {"type": "tool-call", "id": "c-9", "name": "look", "arguments": "{}"}
    with open_sessions(url) as sessions:
        sessions.append_batch(
            "quay",
            (
                AppendEvent("turn/start", {"turn": 2}),
                AppendEvent("step/start", TURN),
                user("u-9", text("again")),
                assistant("a-9", call, turn=2),
                AppendEvent(
                    "tool/call", {**TURN, "callId": "c-9", "name": "look", "arguments": "{}"}
                ),
            ),
        )


def test_fork_prints_the_new_id(run: Run, quay: str) -> None:
    outcome = run("fork", "quay", "--store", quay)

    assert (outcome.status, outcome.out) == (0, "session-1: 14 events of quay\n")


def test_fork_at_a_past_boundary_shows_what_was_shown_then(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        sessions.append_batch("quay", (user("u-2", text("later")),))

    outcome = run("fork", "quay", "--at", "13", "--id", "past", "--store", quay, "--json")

    assert json.loads(outcome.out) == {
        "session": "past",
        "parentSession": "quay",
        "inheritedEvents": 14,
        "events": 15,
    }
    assert "later" not in run("show", "past", "--store", quay).out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("quay", "--at", "5"), "fork-open-turn"),
        (("quay", "--at", "99"), "fork-boundary"),
        (("quay", "--at", "-3"), "fork-boundary"),
        (("quay", "--id", "quay"), "session-exists"),
        (("quay", "--id", "a/b"), "id"),
        (("nowhere",), "fork-not-found"),
    ],
)
def test_a_refused_fork_says_why_and_leaves_nothing(
    run: Run, quay: str, arguments: tuple[str, ...], code: str
) -> None:
    outcome = run("fork", *arguments, "--store", quay, "--json")

    assert (outcome.status, outcome.out) == (1, "")
    assert json.loads(outcome.err)["error"]["code"] == code
    assert len(run("list", "--store", quay, "--json").out.splitlines()) == 1


def test_resume_closes_what_was_left_open(run: Run, quay: str) -> None:
    broken_off(quay)

    outcome = run("resume", "quay", "--store", quay, "--json")

    types = [each["type"] for each in json.loads(outcome.out)["appended"]]
    assert types == ["tool/result", "step/end", "turn/end", "session/end-seed"]
    assert "Whether it took effect is unknown" in run("show", "quay", "--store", quay).out


def test_a_second_resume_appends_nothing(run: Run, quay: str) -> None:
    broken_off(quay)
    run("resume", "quay", "--store", quay)

    outcome = run("resume", "quay", "--store", quay)

    assert (outcome.status, outcome.out) == (0, "quay: 0 events appended\n")


def test_delete_removes_a_session_for_ever(run: Run, quay: str) -> None:
    outcome = run("delete", "quay", "--yes", "--store", quay)

    assert (outcome.status, outcome.out) == (0, "quay: deleted, 14 events\n")
    assert run("list", "--store", quay, "--json").out == ""


def test_delete_without_anybody_to_ask_is_refused(run: Run, quay: str) -> None:
    outcome = run("delete", "quay", "--store", quay)

    assert outcome.status == 2
    assert "--yes" in outcome.err
    assert run("list", "--store", quay, "--json").out != ""


def test_what_is_exported_imports_as_the_same_session(run: Run, quay: str, tmp_path: Path) -> None:
    file = tmp_path / "quay.jsonl"
    exported = run("export", "quay", "--store", quay, "-o", str(file))
    before = json.loads(run("show", "quay", "--store", quay, "--json").out)

    imported = run("import", str(file), "--id", "copy", "--store", quay)

    after = json.loads(run("show", "copy", "--store", quay, "--json").out)
    assert exported.out == f"quay: 14 events to {file}\n"
    assert imported.out == f"imported  {file}: copy, 14 events\n"
    assert after["messages"] == before["messages"]


def test_export_writes_to_standard_output(run: Run, quay: str, tmp_path: Path) -> None:
    run("export", "quay", "--store", quay, "-o", str(tmp_path / "quay.jsonl"))

    outcome = run("export", "quay", "--store", quay)

    assert outcome.out == (tmp_path / "quay.jsonl").read_text()
    assert len(outcome.out.splitlines()) == 15


def test_an_exported_file_is_its_owners_alone(run: Run, quay_file: str, tmp_path: Path) -> None:
    """I5."""
    file = tmp_path / "quay.jsonl"

    run("export", "quay", "--store", quay_file, "-o", str(file))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_export_does_not_replace_a_file_unless_forced(
    run: Run, quay_file: str, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")

    refused = run("export", "quay", "--store", quay_file, "-o", str(file))
    kept = file.read_text()
    forced = run("export", "quay", "--store", quay_file, "-o", str(file), "--force")

    assert (refused.status, kept, forced.status) == (1, "mine", 0)
    assert str(file) in refused.err


def exported(run: Run, url: str, session_id: str) -> bytes:
    """Return an export of `quay` under another id."""
    lines = run("export", "quay", "--store", url).out
    return lines.replace('"id":"quay"', f'"id":"{session_id}"', 1).encode()


def test_one_bad_file_does_not_keep_the_others_out(
    run: Run, quay_file: str, tmp_path: Path
) -> None:
    """E5: a byte-order mark, CRLF, no final newline and an empty file among five."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(exported(run, quay_file, "a"))
    (folder / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + exported(run, quay_file, "b"))
    (folder / "c.jsonl").write_bytes(exported(run, quay_file, "c").replace(b"\n", b"\r\n"))
    (folder / "d.jsonl").write_bytes(exported(run, quay_file, "d").removesuffix(b"\n"))
    (folder / "e.jsonl").write_bytes(b"")

    outcome = run("import", str(folder), "--store", quay_file, "--json")

    files = {Path(each["path"]).stem: each for each in json.loads(outcome.out)["files"]}
    assert outcome.status == 3
    assert "error" in files["e"]
    assert sum("session" in each for each in files.values()) >= 4
    assert files["d"]["warnings"] != []


def test_an_import_of_nothing_that_can_be_read_says_so(
    run: Run, quay_file: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b"\x00\x01\x02 not a log")

    outcome = run("import", str(tmp_path / "bad.jsonl"), "--store", quay_file)

    assert outcome.status == 1
    assert outcome.out.startswith(f"refused   {tmp_path / 'bad.jsonl'}: line 1: ")


def test_import_with_repair_lists_what_it_replaced(
    run: Run, quay_file: str, tmp_path: Path
) -> None:
    file = tmp_path / "torn.jsonl"
    broken = exported(run, quay_file, "torn").replace(b"be brief", b"be brief \\ud800")
    file.write_bytes(broken)

    refused = run("import", str(file), "--store", quay_file)
    repaired = run("import", str(file), "--repair", "--store", quay_file)

    assert (refused.status, repaired.status) == (1, 0)
    assert "replaced: line 4, " in repaired.out


def test_import_reads_standard_input(
    run: Run, quay_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "piped.jsonl"
    file.write_bytes(exported(run, quay_file, "piped"))

    with file.open() as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        outcome = run("import", "-", "--store", quay_file)

    assert (outcome.status, outcome.out) == (0, "imported  -: piped, 14 events\n")


def test_an_id_goes_with_one_file(run: Run, quay_file: str, tmp_path: Path) -> None:
    outcome = run("import", str(tmp_path), "--id", "x", "--store", quay_file)

    assert outcome.status == 2
