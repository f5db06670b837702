"""A store for the tests of plugins."""

from collections.abc import Iterator

import pytest

from everfold.session.ports import SessionStore
from everfold.store.urls import open_store


@pytest.fixture
def store(sqlite_url: str) -> Iterator[SessionStore]:
    """An empty SQLite store."""
    with open_store(sqlite_url) as opened:
        yield opened
