"""A store, and checks that every request can be rebuilt and broke none of a strict provider's rules."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.compaction.kit import StrictRoute, comparing, summarising

STORES = ("store", "any_store")
"""The fixtures that give the store of a test."""


@pytest.fixture
def store(sqlite_url: str) -> Iterator[SessionStore]:
    """An empty SQLite store."""
    with open_store(sqlite_url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def rebuilding(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every request of a test, for an answer or a summary, must equal the one that the log alone gives."""
    stores = [request.getfixturevalue(name) for name in STORES if name in request.fixturenames]
    with comparing(stores):
        yield


@pytest.fixture
def a_route() -> Iterator[Callable[..., StrictRoute]]:
    """Makes strict routes; after the test no request may have had a fault."""
    made: list[StrictRoute] = []

    def make(*script: Any, **facts: Any) -> StrictRoute:
        made.append(summarising(*script, **facts))
        return made[-1]

    yield make
    assert [fault for route in made for fault in route.faults] == []
