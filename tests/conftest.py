"""Fixtures of all tests: the two databases, and how hard hypothesis looks."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import fresh_schema, postgres_server

SLOW_START = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=SLOW_START)
settings.register_profile(
    "ci",
    max_examples=150,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=SLOW_START,
)
settings.load_profile(os.environ.get("EVERFOLD_HYPOTHESIS", "quick"))

# A shell's background jobs inherit that SIGINT is ignored; so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_server_url() -> Iterator[str]:
    """The URL of a real PostgreSQL server, one for each process that runs tests."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server_url: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL store: a schema of its own, dropped afterwards."""
    with fresh_schema(postgres_server_url) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite store whose file does not exist yet."""
    return f"sqlite:///{tmp_path / 'store.sqlite'}"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store; the test runs once on each database."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
