"""Running the command line: in this process, as a real process, and on a real terminal."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60.0
"""After so long a hanging program fails its test; nothing is measured by it."""

MODULE = (sys.executable, "-m", "everfold.cli.main")
ENTRY_POINT = (str(Path(sys.executable).with_name("everfold")),)


@dataclass(frozen=True)
class Outcome:
    """What a program did."""

    status: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without what would change the program's output."""
    dropped = ("EVERFOLD_STORE", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "EVERFOLD_DEBUG")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "TERM": "xterm-256color", **more}


def run_process(
    *arguments: str,
    program: Sequence[str] = MODULE,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Outcome:
    """Run the program with pipes and return what it did."""
    done = subprocess.run(
        [*program, *arguments],
        input=stdin,
        capture_output=True,
        env=environment(**(env or {})),
        timeout=PATIENCE_S,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def started(
    *arguments: str, stdin: int = subprocess.DEVNULL, env: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the program with pipes; it is killed if it outlives the block."""
    with subprocess.Popen(
        [*MODULE, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**(env or {})),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run_on_terminal(*arguments: str, env: Mapping[str, str] | None = None) -> Outcome:
    """Run the program on a terminal of 100 columns and return what that received."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": "100", "LINES": "40"}
    with subprocess.Popen(
        [*MODULE, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(**{**size, **(env or {})}),
        close_fds=True,
    ) as process:
        os.close(theirs)
        received = _read_all(ours, process)
        status = process.wait(PATIENCE_S)
    os.close(ours)
    return Outcome(status, received.decode(errors="surrogateescape"), "")


def run_with_terminal_for_errors(*arguments: str) -> Outcome:
    """Run the program with a pipe for its output and a terminal for its standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*MODULE, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment()
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        out = process.stdout.read()
        err = _read_all(ours, process)
        status = process.wait(PATIENCE_S)
    os.close(ours)
    return Outcome(status, out.decode(), err.decode())


def _read_all(descriptor: int, process: "subprocess.Popen[bytes]") -> bytes:
    received = b""
    while select.select([descriptor], [], [], PATIENCE_S)[0]:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            # A terminal whose last program has ended reads as an error.
            return received
        if not piece:
            return received
        received += piece
    process.kill()
    raise AssertionError("the program hangs")
