"""Large events and large batches over a unix socket, where a full buffer once meant a hang."""

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest

from everfold.session.ports import SessionStore
from everfold.store.contract.rows import row, rows
from everfold.store.urls import open_store
from tests.postgres import fresh_schema, own_server

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def unix_server_url() -> Iterator[str]:
    """A server behind a unix socket, whatever server the other tests use."""
    with own_server() as server:
        url = server.get_uri()
        assert dict(parse_qsl(urlsplit(url).query))["host"].startswith("/")
        yield url


@pytest.fixture(params=["sqlite", "unix-socket"])
def store(request: pytest.FixtureRequest, sqlite_url: str) -> Iterator[SessionStore]:
    """An SQLite store and one on a unix socket."""
    if request.param == "sqlite":
        with open_store(sqlite_url) as store:
            yield store
        return
    with (
        fresh_schema(request.getfixturevalue("unix_server_url")) as url,
        open_store(url) as store,
    ):
        yield store


def test_events_of_a_megabyte_pass(store: SessionStore) -> None:
    events = [row("a", 1), *rows("a", 2, 9, text="z" * MEGABYTE)]

    for event in events:
        store.append([event])

    assert list(store.read("a")) == events


def test_a_batch_of_eight_megabytes_passes(store: SessionStore) -> None:
    events = [row("a", 1), *rows("a", 2, 9, text="z" * MEGABYTE)]

    store.append(events)

    assert list(store.read("a")) == events


def test_an_event_of_sixteen_megabytes_passes(store: SessionStore) -> None:
    event = row("a", 2, text="z" * (16 * MEGABYTE))
    store.append([row("a", 1)])

    store.append([event])

    assert list(store.read("a", after=1)) == [event]


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_batches_of_thousands_of_events_pass(store: SessionStore, count: int) -> None:
    events = rows("a", 1, count, text="z" * 600)

    positions = store.append(events)

    assert len(positions) == count
    assert list(store.read("a")) == events
    assert [n.event for n in store.read_all()] == events


def test_large_events_reach_a_subscriber(store: SessionStore) -> None:
    events = [row("a", 1), *rows("a", 2, 4, text="z" * MEGABYTE)]
    store.append(events)

    with store.subscribe() as notifications:
        seen = [next(notifications).event for _ in events]

    assert seen == events
