"""Fixtures of the store's tests."""

from collections.abc import Iterator

import pytest

from tests.proxy import Proxy


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    """A proxy in front of the test's PostgreSQL schema."""
    with Proxy(postgres_url) as proxy:
        yield proxy
