"""Fixtures of the audit's tests: a host on either database."""

from collections.abc import Iterator

import pytest

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions


@pytest.fixture
def sessions(store_url: str) -> Iterator[Sessions]:
    """A host on each database in turn."""
    with open_sessions(store_url) as opened:
        yield opened
