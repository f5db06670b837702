"""The program as a process: its two names, its start, signals and closed pipes."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from everfold.cli import edge
from everfold.cli.edge import DONE, EXIT_CODES, INTERRUPTED, READER_GONE
from everfold.host.opening import open_sessions
from everfold.session.session import Session
from tests.cli.programs import ENTRY_POINT, MODULE, PATIENCE_S, environment, run_process, started
from tests.talks import text, user

HEAVY = ("rich", "PIL", "psycopg", "sqlite3", "eventsourcing", "pydantic", "orjson", "asyncio")


@pytest.mark.parametrize("program", [MODULE, ENTRY_POINT], ids=["module", "entry point"])
def test_both_names_start_the_program(program: Sequence[str], quay_file: str) -> None:
    helped = run_process("--help", program=program)
    listed = run_process("list", "--store", quay_file, "--json", program=program)

    assert helped.out.startswith("Usage: everfold ")
    assert (helped.status, listed.status) == (DONE, DONE)
    assert json.loads(listed.out)["session"] == "quay"


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "list",
        "show",
        "log",
        "fork",
        "resume",
        "audit",
        "import",
        "export",
        "plugins",
        "delete",
    ],
)
def test_every_command_has_help(command: str) -> None:
    outcome = run_process(command, "--help")

    assert outcome.status == 0
    assert outcome.out.startswith(f"Usage: everfold {command} ")
    assert "--json" in outcome.out


def test_help_names_the_default_store_and_the_exit_codes() -> None:
    outcome = run_process("--help", env={"XDG_DATA_HOME": "/data of/me"})

    assert "sqlite:////data of/me/everfold/sessions.sqlite" in outcome.out
    told = dict(re.findall(r"^  (\d+) +(\S.*)$", outcome.out, re.MULTILINE))
    assert told == {str(code): meaning for code, meaning in EXIT_CODES.items()}


def test_every_status_that_the_program_gives_has_a_meaning() -> None:
    given = {value for name, value in vars(edge).items() if name.isupper() and type(value) is int}

    assert given == set(EXIT_CODES)


def test_the_documents_name_every_exit_code() -> None:
    page = Path(__file__).parents[2].joinpath("docs/cli.md").read_text("utf-8")
    section = page.partition("## Exit codes\n")[2].partition("\n## ")[0]

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)} == set(
        EXIT_CODES
    )


def test_no_command_at_all_is_wrong_usage() -> None:
    outcome = run_process()

    assert outcome.status == 2
    assert outcome.err.startswith("Usage: everfold ")


def test_the_version_is_printed() -> None:
    outcome = run_process("--version")

    assert outcome.out.startswith("everfold, version ")


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from everfold.cli.main import main; main(['--help']);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stderr.decode() == "[]\n"


def long_log(url: str) -> None:
    with open_sessions(url) as sessions:
        sessions.create("long")
        batch = [user(f"u-{number}", text("words " * 200)) for number in range(2000)]
        sessions.append_batch("long", batch)


@pytest.mark.parametrize(
    "command", [("log", "long"), ("export", "long"), ("show", "long", "--json")]
)
def test_a_reader_that_goes_away_is_no_error(sqlite_url: str, command: tuple[str, ...]) -> None:
    long_log(sqlite_url)

    with started(*command, "--store", sqlite_url) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        complaints = process.stderr.read()
        status = process.wait(PATIENCE_S)

    assert (status, complaints) == (READER_GONE, b"")


def test_an_interrupt_is_exit_code_130_without_a_traceback(sqlite_url: str) -> None:
    long_log(sqlite_url)

    with started("log", "long", "--store", sqlite_url) as process:
        assert process.stdout is not None
        # It waits, for the pipe is full and nobody reads on.
        process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        _rest, complaints = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == INTERRUPTED
    assert b"Traceback" not in complaints


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(quay_file: str, closed: str) -> None:
    command = shlex.join([*MODULE, "list", "--store", quay_file])

    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {closed}"],
        capture_output=True,
        env=environment(),
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_output_survives_a_terminal_that_knows_ascii_alone(quay_file: str) -> None:
    with open_sessions(quay_file) as sessions:
        sessions.append_batch("quay", (user("u-2", text("naïve 漢")),))

    outcome = run_process("show", "quay", "--store", quay_file, env={"PYTHONIOENCODING": "ascii"})

    assert outcome.status == 0
    assert "na\\xefve \\u6f22" in outcome.out


def test_ten_thousand_sessions_are_listed(sqlite_url: str) -> None:
    with open_sessions(sqlite_url) as sessions:
        header = sessions.create("s").header
        parts = (sessions.composition, sessions.means)
        made = [Session.create({**header, "id": f"n-{n:05}"}, *parts) for n in range(10_000)]
        sessions.store.append([row for session in made for row in session.collect_events()])

    outcome = run_process("list", "--store", sqlite_url)

    lines = outcome.out.splitlines()
    assert len(lines) == 10_002
    assert [lines[1].split()[0], lines[10_001].split()[0]] == ["n-00000", "s"]
