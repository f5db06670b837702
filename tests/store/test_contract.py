"""The store's contract on every database that everfold ships."""

import pytest

from everfold.store.contract.base import StoreOpener
from everfold.store.contract.rows import row
from everfold.store.testing import PrivateStoreContract, SessionStoreContract
from everfold.store.urls import open_store


class TestSqliteFile(SessionStoreContract):
    """An SQLite file."""

    @pytest.fixture
    def open_store(self, sqlite_url: str) -> StoreOpener:
        """Open the test's file."""
        return lambda: open_store(sqlite_url)


class TestSqliteMemory(PrivateStoreContract):
    """An SQLite database in memory."""

    @pytest.fixture
    def open_store(self) -> StoreOpener:
        """Open a new database."""
        return lambda: open_store("sqlite:///:memory:")


class TestPostgres(SessionStoreContract):
    """A schema on a PostgreSQL server."""

    @pytest.fixture
    def open_store(self, postgres_url: str) -> StoreOpener:
        """Open the test's schema."""
        return lambda: open_store(postgres_url)


def test_two_stores_in_memory_share_nothing() -> None:
    with open_store("sqlite:///:memory:") as one, open_store("sqlite:///:memory:") as other:
        one.append([row("a", 1)])

        assert list(other.streams()) == []
