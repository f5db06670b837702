"""Users' mistakes: a message that says what to do, a code, and never a traceback."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from everfold.host.opening import open_sessions
from tests.audit.damage import execute
from tests.cli.conftest import Run
from tests.cli.programs import run_process
from tests.raw import path_of
from tests.talks import talk

READING = (
    ("list",),
    ("show", "quay"),
    ("log", "quay"),
    ("audit", "quay"),
    ("audit", "--all"),
    ("export", "quay"),
)


def garbage(folder: Path) -> Path:
    path = folder / "garbage.sqlite"
    path.write_bytes(bytes(range(256)) * 40)
    return path


def foreign(folder: Path) -> Path:
    path = folder / "foreign.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.commit()
    return path


def newer(folder: Path) -> Path:
    path = folder / "newer.sqlite"
    with open_sessions(f"sqlite:///{path}") as sessions:
        talk(sessions)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA user_version = 9999")
        connection.commit()
    return path


def directory(folder: Path) -> Path:
    path = folder / "directory.sqlite"
    path.mkdir()
    return path


def tree_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.parametrize("command", READING, ids=" ".join)
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (garbage, "store-foreign"),
        (foreign, "store-foreign"),
        (newer, "store-schema"),
        (directory, "store-unavailable"),
        (lambda folder: folder / "missing.sqlite", "store-unavailable"),
    ],
    ids=["garbage", "foreign", "newer", "directory", "missing"],
)
def test_a_store_that_is_none_of_ours_is_refused_and_left_alone(
    run: Run,
    tmp_path: Path,
    command: tuple[str, ...],
    make: Callable[[Path], Path],
    code: str,
) -> None:
    """K4 for a newer schema: both versions are named and the file stays as it is."""
    path = make(tmp_path)
    before = tree_of(tmp_path)

    outcome = run(*command, "--store", str(path), "--json")

    error = json.loads(outcome.err)["error"]
    assert (outcome.status, outcome.out, error["code"]) == (1, "", code)
    assert str(path) in error["message"]
    assert tree_of(tmp_path) == before


@pytest.mark.parametrize("command", [("fork", "quay"), ("resume", "quay"), ("delete", "quay")])
def test_commands_on_a_session_never_make_a_store(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    outcome = run(*command, "--store", str(tmp_path / "missing.sqlite"))

    assert outcome.status == 1
    assert "there is no store at" in outcome.err
    assert tree_of(tmp_path) == {}


def test_a_reading_command_without_any_store_makes_nothing(run: Run, tmp_path: Path) -> None:
    outcome = run("list")

    assert outcome.status == 1
    assert str(tmp_path / "data" / "everfold" / "sessions.sqlite") in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "session",
    [
        "../../x",
        "..\\x",
        "a/b",
        ".",
        "",
        "/etc/passwd",
        "nul\x00byte",
        "x" * 300,
        "esc\x1b[31m",
        "\ud800",
    ],
)
@pytest.mark.parametrize("command", ["show", "log", "audit", "export", "fork", "resume", "delete"])
def test_an_id_that_cannot_be_one_is_refused(
    run: Run, quay_file: str, tmp_path: Path, command: str, session: str
) -> None:
    """I1: from the command line no id reaches a path."""
    before = tree_of(tmp_path)

    outcome = run(command, session, "--store", quay_file, "--json")

    assert outcome.status == 1
    assert json.loads(outcome.err)["error"]["code"] == "id"
    assert tree_of(tmp_path).keys() == before.keys()


@pytest.mark.parametrize("session", ["nowhere", "CON", "%2e%2e%2f", "Quay", "-- 1=1", "🛥"])
@pytest.mark.parametrize("command", ["show", "log", "audit", "export", "fork", "resume", "delete"])
def test_an_unknown_session_is_named(run: Run, quay_file: str, command: str, session: str) -> None:
    outcome = run(command, "--store", quay_file, "--json", "--", session)

    error = json.loads(outcome.err)["error"]
    assert (outcome.status, error["code"]) == (1, "fork-not-found")
    assert repr(session) in error["message"]


@pytest.mark.parametrize("prefix", ["it's", "100%", "q_ay", '"', "(", "x' OR 1=1 --", "🛥"])
def test_a_prefix_is_taken_literally(run: Run, quay: str, prefix: str) -> None:
    """I6."""
    outcome = run("list", "--store", quay, "--prefix", prefix)

    assert (outcome.status, outcome.out) == (0, "no session is left\n")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://somewhere/x",
        "sqlite://host/x.sqlite",
        "sqlite:///x.sqlite?colour=red",
        "postgresql://[::1",
        "postgresql://h/d?connect_timeout=nope",
    ],
)
def test_a_store_url_that_makes_no_sense_is_refused(run: Run, url: str) -> None:
    outcome = run("list", "--store", url)

    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("everfold: ")
    assert "Traceback" not in outcome.err


def test_a_server_that_does_not_answer_is_named_without_its_password(run: Run) -> None:
    """I4: a store URL's password is never printed."""
    url = "postgresql://keeper:hunter2secret@127.0.0.1:1/log?connect_timeout=2"

    outcome = run("list", "--store", url, "--json")

    assert outcome.status == 1
    assert json.loads(outcome.err)["error"]["code"] == "store-unavailable"
    assert "hunter2secret" not in outcome.out + outcome.err


def test_a_wrong_url_is_quoted_without_its_password(run: Run) -> None:
    outcome = run("list", "--store", "mysql://keeper:hunter2secret@host/log")

    assert outcome.status == 1
    assert "hunter2secret" not in outcome.out + outcome.err


def test_a_session_of_a_store_that_is_read_only_can_be_read(run: Run, quay_file: str) -> None:
    with open_sessions(quay_file):
        pass
    path = path_of(quay_file)
    path.chmod(0o400)

    outcome = run("show", "quay", "--store", quay_file)

    assert outcome.status == 0
    assert outcome.out.startswith("quay, at seq 13")


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "a", "b"),
        ("show", "quay", "--at", "soon"),
        ("show", "quay", "--request", "0"),
        ("show", "quay", "--request", "1", "--at", "2"),
        ("list", "--limit", "0"),
        ("list", "--prefix", "\udcff"),
        ("list", "--after", "\udcff"),
        ("log", "quay", "--first", "-1"),
        ("audit",),
        ("audit", "quay", "--all"),
        ("import",),
        ("nonsense",),
        ("list", "--nonsense"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_and_says_where_help_is(
    run: Run, quay_file: str, arguments: tuple[str, ...]
) -> None:
    outcome = run("--store", quay_file, *arguments)

    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("everfold: ")
    assert "Traceback" not in outcome.err


def test_a_request_that_the_session_does_not_have_is_refused(run: Run, quay: str) -> None:
    outcome = run("show", "quay", "--request", "99", "--store", quay, "--json")

    error = json.loads(outcome.err)["error"]
    assert (outcome.status, error["code"]) == (1, "request")
    assert error["message"] == "session 'quay' has 3 request(s), no number 99"


def test_wrong_usage_is_json_when_json_is_asked_for(run: Run) -> None:
    outcome = run("list", "--json", "--nonsense")

    assert json.loads(outcome.err)["error"]["code"] == "usage"


@pytest.mark.parametrize(
    "content",
    [b"", b"\x89PNG\r\n\x1a\n\x00", b"{}\n", b"[1,2]\n", b'{"type":"session","version":9}\n'],
)
def test_a_file_that_is_no_log_is_refused_with_its_line(
    run: Run, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)

    outcome = run("import", str(tmp_path / "x.jsonl"), "--store", str(tmp_path / "s.sqlite"))

    assert outcome.status == 1
    assert "line 1: " in outcome.out
    assert "Traceback" not in outcome.err


def test_an_import_of_a_missing_file_makes_no_store(run: Run, tmp_path: Path) -> None:
    outcome = run("import", str(tmp_path / "x.jsonl"), "--store", str(tmp_path / "s.sqlite"))

    assert outcome.status == 1
    assert str(tmp_path / "x.jsonl") in outcome.err
    assert tree_of(tmp_path) == {}


def test_a_full_output_device_is_reported(quay_file: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "everfold.cli.main", "log", "quay", "--store", quay_file],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_locked_database_is_a_clear_refusal(quay_file: str) -> None:
    path = path_of(quay_file)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcome = run_process(
            "fork", "quay", "--store", f"{quay_file}?lock_timeout_s=0.2", "--json"
        )

    assert outcome.status == 1
    assert json.loads(outcome.err)["error"]["code"] == "store-busy"


def test_a_foreign_table_is_left_as_it_is(run: Run, tmp_path: Path) -> None:
    path = foreign(tmp_path)
    execute(f"sqlite:///{path}", "INSERT INTO recipes VALUES ('soup')")
    before = tree_of(tmp_path)

    outcome = run("import", str(path), "--store", str(path))

    assert outcome.status == 1
    assert tree_of(tmp_path) == before
