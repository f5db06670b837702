"""What `everfold import` takes beside plain files: pipes and standard input; and what it does not wait for."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everfold.cli.main import main
from tests.cli.conftest import Run
from tests.cli.programs import PATIENCE_S, environment, run_on_terminal
from tests.interchange.logs import plain_turns


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A session file."""
    path = tmp_path / "session.jsonl"
    path.write_bytes(plain_turns())
    return path


def test_a_pipe_of_the_shell_is_a_file(file: Path, sqlite_url: str) -> None:
    line = f'"{sys.executable}" -m everfold.cli.main import <(cat "{file}") --store "{sqlite_url}"'

    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        env=environment(),
        timeout=PATIENCE_S,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert b": session-1, 25 events\n" in done.stdout


def test_a_pipe_that_nobody_writes_is_refused_and_not_waited_for(
    run: Run, tmp_path: Path, sqlite_url: str
) -> None:
    os.mkfifo(tmp_path / "pipe")

    outcome = run("import", str(tmp_path / "pipe"), "--store", sqlite_url)

    assert outcome.status == 1
    assert "is a pipe that nobody writes to" in outcome.out


def test_a_terminal_is_not_waited_for(sqlite_url: str) -> None:
    outcome = run_on_terminal("import", "-", "--store", sqlite_url)

    assert outcome.status == 2
    assert "name a file, or pipe one in" in outcome.out


def test_no_standard_input_is_wrong_usage(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)

    status = main(["import", "-", "--store", sqlite_url])

    assert status == 2
    assert "name a file, or pipe one in" in capsys.readouterr().err


def test_a_gzip_file_is_named_and_what_to_do(run: Run, file: Path, sqlite_url: str) -> None:
    packed = file.with_name("session.jsonl.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))

    outcome = run("import", str(packed), "--store", sqlite_url)

    assert (outcome.status, outcome.out) == (
        1,
        f"refused   {packed}: line 1: the file is compressed with gzip; decompress it first\n",
    )
