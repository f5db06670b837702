"""Fixtures of the agent's tests. Every request that a test sends is rebuilt from the log and compared."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.kit import Host, hosting


@pytest.fixture
def quick_url(tmp_path: Path) -> str:
    """The URL of an SQLite store that does not wait for the disk."""
    return f"sqlite:///{tmp_path / 'agents.db'}?synchronous=off"


@pytest.fixture
def host(quick_url: str) -> Iterator[Host]:
    """A host on an empty SQLite store, with the shipped plugins mounted."""
    with hosting(quick_url) as host:
        yield host


@pytest.fixture
def any_host(store_url: str) -> Iterator[Host]:
    """A host on an empty store of each kind."""
    with hosting(store_url) as host:
        yield host
