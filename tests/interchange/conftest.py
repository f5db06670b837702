"""A real store, and what an import needs beside it."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from everfold.interchange.importing import ImportResult, import_session
from everfold.interchange.limits import DEFAULT_LIMITS, ImportLimits
from everfold.interchange.lines import Source
from everfold.projections.catalog import detached_composition
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.interchange.old_files import Old, Records


@pytest.fixture
def store(sqlite_url: str) -> Iterator[SessionStore]:
    """An empty store in a file."""
    with open_store(sqlite_url) as opened:
        yield opened


@pytest.fixture
def composition() -> Composition:
    """The shipped interpreters."""
    return detached_composition()


@pytest.fixture
def means() -> DecisionMeans:
    """A clock that stands still and ids that count."""
    ids = count(1)
    return DecisionMeans(clock=lambda: 1_723_000_000_000, new_id=lambda: f"id-{next(ids)}")


@pytest.fixture
def take(
    store: SessionStore, composition: Composition, means: DecisionMeans
) -> Callable[..., ImportResult]:
    """Import a source into the store."""

    def run(
        source: Source,
        *,
        session_id: str | None = None,
        repair: bool = False,
        limits: ImportLimits = DEFAULT_LIMITS,
    ) -> ImportResult:
        if isinstance(source, bytes):
            source = [source]
        return import_session(
            source, store, composition, means, session_id=session_id, repair=repair, limits=limits
        )

    return run


@pytest.fixture
def upgraded(store: SessionStore, take: Callable[..., ImportResult]) -> Callable[[Old], Records]:
    """Import a file and return the stored records."""

    def run(old: Old) -> Records:
        take(old.content())
        return [row.record() for row in store.read("old-1", after=1)]

    return run
