"""Reports from the field, group I: ids as paths, secrets, and what hosts say about payloads."""

import json
import logging
from pathlib import Path

import pytest

from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.session.errors import IdError, SessionExistsError
from tests.cli.conftest import Run
from tests.domain.kit import text
from tests.field_reports.kit import asks, names, result, turn
from tests.host.kit import hello

HOSTILE = ["../../x", "..\\x", "a/b", ".", "..", "/etc/passwd", "a\x00b", "x" * 300, "", "a\nb"]
HARMLESS = ["CON", "%2e%2e%2f", "a.b", "a:b", "a_b", "Room", "room", "e\u0301", "\u00e9", "ш" * 100]


def tree(folder: Path) -> set[Path]:
    """Return every path below a folder, those of the SQLite store left out."""
    return {path for path in folder.rglob("*") if not path.name.startswith("store.sqlite")}


@pytest.mark.parametrize("session_id", HOSTILE)
def test_i1_an_id_that_could_be_a_path_makes_no_session_and_no_file(
    sessions: Sessions, tmp_path: Path, session_id: str
) -> None:
    sessions.create("s")
    before = tree(tmp_path)

    with pytest.raises(IdError):
        sessions.create(session_id)
    with pytest.raises(IdError):
        sessions.fork("s", child_id=session_id)
    with pytest.raises(IdError):
        export_session(sessions.store, session_id, tmp_path)

    assert [each.stream_id for each in sessions.summaries()] == ["s"]
    assert tree(tmp_path) == before


def test_i2_ids_that_look_alike_are_sessions_and_files_of_their_own(
    sessions: Sessions, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for session_id in HARMLESS:
        sessions.create(session_id)
        sessions.append_batch(session_id, [hello(session_id)])
    with pytest.raises(SessionExistsError):
        sessions.create("room")

    paths = [export_session(sessions.store, each, folder).path for each in HARMLESS]

    assert [names(sessions, each) for each in HARMLESS] == [[each] for each in HARMLESS]
    assert tree(folder) == set(paths)
    assert len({str(path).casefold() for path in paths}) == len(HARMLESS)


SECRET = "sk-test-0000000000000000"


def test_i4_every_format_gives_the_same_and_nothing_else_holds_a_payload(
    sessions: Sessions,
    store_url: str,
    everfold: Run,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing is redacted anywhere (docs/cli.md): what is in the log is in each format alike."""
    caplog.set_level(logging.DEBUG)
    sessions.create("s")
    sessions.append_batch("s", [*asks("c1"), result("c1", SECRET), *turn(2, SECRET)[1:2]])
    sessions.append("s", "session/title", {"title": SECRET, "messageSeqs": [2]})
    export_session(sessions.store, "s", tmp_path / "s.jsonl")

    outputs = {
        "export": (tmp_path / "s.jsonl").read_text(),
        "log": everfold("log", "s", "--store", store_url, "--json").out,
    }
    audited = everfold("audit", "s", "--steps", "--store", store_url, "--json")

    assert {name: out.count(SECRET) for name, out in outputs.items()} == dict.fromkeys(outputs, 3)
    assert SECRET not in audited.out
    assert json.loads(audited.out)["sound"] is True
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "prefix", ["it's", "a/b.py", "100%", "agent_id", '"', "(", "NEAR", "x' OR 1=1 --", "🚣", "\\"]
)
def test_i6_a_prefix_finds_what_begins_with_it_and_nothing_else(
    sessions: Sessions, store_url: str, everfold: Run, prefix: str
) -> None:
    told = [prefix + "-1", prefix + "-2"] if "/" not in prefix and "\\" not in prefix else []
    for session_id in [*told, "agentXid-1", "100x", "its", "other"]:
        sessions.create(session_id)
    sessions.append_batch("other", [hello("u", text(prefix))])

    outcome = everfold("list", "--store", store_url, "--json", "--prefix", prefix)

    assert outcome.status == 0
    assert [json.loads(line)["session"] for line in outcome.out.splitlines()] == told
