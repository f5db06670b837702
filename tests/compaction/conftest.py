"""A store, and a check that no request broke a strict provider's rules."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.compaction.kit import StrictRoute, summarising


@pytest.fixture
def store(sqlite_url: str) -> Iterator[SessionStore]:
    """An empty SQLite store."""
    with open_store(sqlite_url) as opened:
        yield opened


@pytest.fixture
def a_route() -> Iterator[Callable[..., StrictRoute]]:
    """Makes strict routes; after the test no request may have had a fault."""
    made: list[StrictRoute] = []

    def make(*script: Any, **facts: Any) -> StrictRoute:
        made.append(summarising(*script, **facts))
        return made[-1]

    yield make
    assert [fault for route in made for fault in route.faults] == []
