"""A host on each database."""

from collections.abc import Iterator

import pytest

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store


@pytest.fixture
def store(store_url: str) -> Iterator[SessionStore]:
    """An empty store; the test runs once on each database."""
    with open_store(store_url) as opened:
        yield opened


@pytest.fixture
def sessions(store: SessionStore) -> Sessions:
    """A host of that store."""
    return Sessions(store, detached_composition())
