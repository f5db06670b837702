"""The standing checks around every test, and a host of the store under test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everfold.cli.main import main
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from tests.cli.conftest import Run
from tests.cli.programs import Outcome
from tests.field_reports.witness import (
    Witness,
    check_folds,
    check_texts_and_next_message,
    rows_of,
)
from tests.postgres import fresh_schema

STORES = ("store_url", "sqlite_url", "postgres_url")
EXIT_CODES = (0, 1, 2, 3)


@pytest.fixture(autouse=True)
def witness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Witness]:
    """S1, S2, S5 and S7, checked when the test has ended, on each store that it named."""
    server_url: str = request.getfixturevalue("postgres_server_url")
    named = [name for name in STORES if name in request.fixturenames]
    witness = Witness(request.getfixturevalue(name) for name in named)
    yield witness
    witness.check_rows()
    for number, url in enumerate(witness.urls):
        if not rows_of(url):
            continue
        if url.startswith("sqlite:"):
            with fresh_schema(server_url) as other_url:
                check_folds(url, other_url, witness.damaged)
                check_texts_and_next_message(other_url)
        else:
            other_url = f"sqlite:///{tmp_path / f'witness-{number}.sqlite'}"
            check_folds(url, other_url, witness.damaged)
            check_texts_and_next_message(other_url)


@pytest.fixture
def sessions(store_url: str, witness: Witness) -> Iterator[Sessions]:
    """A host of an empty store, on each database in turn; the witness sees what it stores."""
    with open_sessions(store_url) as sessions:
        sessions.observers.append(witness.note)
        yield sessions


@pytest.fixture
def everfold(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process; S6: it ends well, or with one line that says why."""

    def run(*arguments: str) -> Outcome:
        status = main(arguments)
        out, err = capfd.readouterr()
        assert status in EXIT_CODES, err
        assert "Traceback" not in out + err
        assert status == 0 or out or err.startswith(("everfold: ", '{"error"'))
        return Outcome(status, out, err)

    return run
