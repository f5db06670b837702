"""Reports from the field, group F: damage from crashes, seen by those who open and import."""

import json
from pathlib import Path

import pytest

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.interchange.importing import view_file
from everfold.session.errors import SessionError
from everfold.session.ids import version_of
from tests.audit.damage import remove_row, rewrite_row
from tests.cli.conftest import Run
from tests.field_reports.kit import names, turn
from tests.field_reports.witness import Witness
from tests.interchange.files import HEADER, Log, file_of
from tests.interchange.logs import plain_turns

LAST_BYTES = 200


def file_with_wide_characters() -> bytes:
    """Return a file whose last lines are mostly characters of several bytes."""
    log = Log()
    for number in range(6):
        log.user({"type": "text", "text": f"{number} 🚣é→" * 5})
    return file_of(log.records)


def test_f1_a_cut_anywhere_loses_the_torn_record_alone(
    store_url: str, everfold: Run, tmp_path: Path
) -> None:
    """Each of the last 200 places, inside of characters too; one import of a folder takes them all."""
    content = file_with_wide_characters()
    folder = tmp_path / "cut"
    folder.mkdir()
    for back in range(1, LAST_BYTES + 1):
        cut = content[:-back].replace(b'"id":"session-1"', b'"id":"cut-%03d"' % back)
        (folder / f"{back:03}.jsonl").write_bytes(cut)

    outcome = everfold("import", str(folder), "--store", store_url, "--json")

    files = json.loads(outcome.out)["files"]
    assert outcome.status == 0
    assert [each["events"] for each in files] == [
        content[:-back].count(b"\n") - 1 for back in range(1, LAST_BYTES + 1)
    ]
    torn = [not content[:-back].endswith(b"\n") for back in range(1, LAST_BYTES + 1)]
    assert [bool(each["warnings"]) for each in files] == torn
    with open_sessions(store_url) as sessions:
        sessions.append_batch("cut-001", turn(7))
        assert len(names(sessions, "cut-001")) == 7


def swapped(content: bytes) -> bytes:
    """Return a file whose lines 42 to 45 came in the order 44, 45, 42, 43."""
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[:41], *lines[43:45], *lines[41:43], *lines[45:]])


def with_hole(content: bytes) -> bytes:
    """Return a file without its lines 42 to 45."""
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[:41], *lines[45:]])


@pytest.mark.parametrize("spoil", [swapped, with_hole])
def test_f2_a_disorder_is_named_and_what_is_before_it_can_be_seen(
    sqlite_url: str, everfold: Run, tmp_path: Path, spoil: object
) -> None:
    assert callable(spoil)
    path = tmp_path / "s.jsonl"
    path.write_bytes(spoil(plain_turns(8)))
    before = path.read_bytes()

    outcome = everfold("import", str(path), "--store", sqlite_url, "--json")
    repaired = everfold("import", str(path), "--repair", "--store", sqlite_url)
    with open_sessions("sqlite://") as host:
        view = view_file(path, host.composition, host.means)

    (file,) = json.loads(outcome.out)["files"]
    assert (outcome.status, repaired.status) == (1, 1)
    assert {key: file["error"][key] for key in ("code", "line", "seq")} == {
        "code": "sequence",
        "line": 42,
        "seq": 40,
    }
    assert view.session.next_seq == 40
    assert path.read_bytes() == before
    with open_sessions(sqlite_url) as sessions:
        assert list(sessions.summaries()) == []


def test_f2_an_audit_fails_where_a_row_is_missing(
    store_url: str, sessions: Sessions, witness: Witness, everfold: Run
) -> None:
    sessions.create("s")
    for number in range(12):
        sessions.append_batch("s", turn(number))
    witness.damaged.add("s")
    remove_row(store_url, "s", version_of(40))

    audited = everfold("audit", "s", "--store", store_url)
    shown = everfold("show", "s", "--at", "39", "--store", store_url)

    assert (audited.status, shown.status) == (1, 0)
    assert "s: NOT SOUND, 40 of 48 events readable\n" in audited.out
    assert "s seq 40: " in audited.out
    assert "the row is missing" in audited.out


def test_f3_zeros_in_the_middle_leave_no_part_of_a_session(
    store_url: str, everfold: Run, tmp_path: Path
) -> None:
    lines = plain_turns(8).splitlines(keepends=True)[:60]
    lines[29] = b"\0" * 512
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))

    outcome = everfold("import", str(path), "--store", store_url, "--json")
    listed = everfold("list", "--store", store_url, "--json")
    shown = everfold("show", str(HEADER["id"]), "--store", store_url)

    (file,) = json.loads(outcome.out)["files"]
    assert (outcome.status, file["error"]["line"]) == (1, 30)
    assert "NUL" in file["error"]["message"]
    assert (listed.out, shown.status) == ("", 1)


def test_f4_one_damaged_session_of_a_hundred_is_flagged_and_the_others_are_usable(
    store_url: str, sessions: Sessions, witness: Witness, everfold: Run
) -> None:
    ids = [f"s-{number:02}" for number in range(100)]
    for session_id in ids:
        sessions.create(session_id)
        sessions.append_batch(session_id, turn(1))
    witness.damaged.add("s-42")
    rewrite_row(store_url, "s-42", version_of(3), b'{"eventId":"x","time":1,"da')

    listed = everfold("list", "--store", store_url, "--json", "--limit", "1000")
    refused = []
    with open_sessions(store_url) as host:
        for session_id in ids:
            try:
                host.append_batch(session_id, turn(2))
            except SessionError as refusal:
                refused.append((session_id, refusal.seq))

    found = [json.loads(line) for line in listed.out.splitlines()]
    assert [each["session"] for each in found] == ids
    assert [each["session"] for each in found if each["damage"]] == ["s-42"]
    assert refused == [("s-42", 3)]
