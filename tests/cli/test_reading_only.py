"""The commands that read, run by somebody who may write nothing."""

import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from everfold.cli.main import main
from everfold.host.opening import open_sessions
from tests.cli.programs import Outcome
from tests.processes import Worker
from tests.store.test_reading_only import become_nobody, lock
from tests.talks import talk

READING = (
    ("list", "--titles"),
    ("show", "quay"),
    ("log", "quay"),
    ("images", "quay"),
    ("audit", "quay"),
    ("audit", "--all"),
    ("export", "quay"),
)

CHANGING = (
    ("omit", "quay", "3:0"),
    ("fork", "quay"),
    ("resume", "quay"),
    ("delete", "quay", "--yes"),
    ("compact", "quay"),
    ("run", "hello"),
    ("chat", "quay"),
)


def told(*arguments: str) -> Outcome:
    """Run the command line and return what it printed."""
    out, err = BytesIO(), StringIO()
    with redirect_stdout(TextIOWrapper(out, "utf-8")) as text, redirect_stderr(err):
        status = main(arguments)
        text.flush()
    return Outcome(status, out.getvalue().decode(), err.getvalue())


def run_as_nobody(arguments: tuple[str, ...], url: str, elsewhere: str) -> Outcome:
    """Run a command as somebody without rights."""
    told(*arguments, "--store", elsewhere)  # what is imported late may not be readable later
    become_nobody()
    return told(*arguments, "--store", url)


@pytest.fixture
def locked_url() -> Iterator[str]:
    """The URL of a store in a folder where nothing may be written."""
    with tempfile.TemporaryDirectory(prefix="everfold-reading-") as name:
        url = f"sqlite:///{name}/store.sqlite"
        with open_sessions(url) as sessions:
            talk(sessions)
        lock(Path(name))
        yield url
        Path(name).chmod(0o755)


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_what_reads_needs_no_right_to_write(
    locked_url: str, quay_file: str, arguments: tuple[str, ...]
) -> None:
    expected = told(*arguments, "--store", quay_file)

    outcome = Worker(run_as_nobody, arguments, locked_url, quay_file).result()

    assert (outcome.status, outcome.err) == (0, "")
    assert len(outcome.out.splitlines()) == len(expected.out.splitlines())


@pytest.mark.parametrize("arguments", CHANGING, ids=" ".join)
def test_what_changes_a_store_says_that_it_may_not_be_written(
    locked_url: str, quay_file: str, arguments: tuple[str, ...]
) -> None:
    outcome = Worker(run_as_nobody, arguments, locked_url, quay_file).result()

    path = locked_url.removeprefix("sqlite:///")
    assert outcome.status == 1
    assert outcome.err.startswith(f"everfold: the store {path} cannot be changed: ")
    assert "may not be written; the commands that only read it still work\n" in outcome.err
