"""Fixtures of the command line's tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everfold.cli.main import main
from everfold.host.opening import open_sessions
from tests.cli.programs import Outcome
from tests.talks import talk

Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("EVERFOLD_STORE", "EVERFOLD_DEBUG", "EVERFOLD_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process."""

    def call(*arguments: str) -> Outcome:
        status = main(arguments)
        out, err = capfd.readouterr()
        return Outcome(status, out, err)

    return call


@pytest.fixture
def quay(store_url: str) -> str:
    """The URL of a store, on each database in turn, with the session `quay`."""
    with open_sessions(store_url) as sessions:
        talk(sessions)
    return store_url


@pytest.fixture
def quay_file(sqlite_url: str) -> str:
    """The URL of an SQLite store with the session `quay`."""
    with open_sessions(sqlite_url) as sessions:
        talk(sessions)
    return sqlite_url
