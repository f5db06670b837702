"""Fixtures of the routes: a strict provider, a store, and the check that what was prepared was sent."""

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.route import Route
from tests.providers.strict_fake import StrictFake, strict_fake
from tests.routes.talk import Talk

Talking = Callable[[Route], Talk]


@pytest.fixture
def store(tmp_path: Path) -> FileAttachments:
    """A store of attachments in a folder."""
    return FileAttachments(tmp_path / "attachments")


@pytest.fixture
def versions(store: FileAttachments) -> RequestVersions:
    """The request versions of the store's pictures."""
    return RequestVersions(store)


@pytest.fixture
def fake() -> Iterator[StrictFake]:
    """A strict provider on loopback."""
    with strict_fake() as running:
        yield running


@pytest.fixture
def talking(fake: StrictFake) -> Iterator[Talking]:
    """Wraps a route of the fake; afterwards every dispatched body must be the one received, byte for byte."""
    talks: list[Talk] = []

    def talk(route: Route) -> Talk:
        talks.append(Talk(route))
        return talks[-1]

    yield talk
    dispatched = [orjson.dumps(prepared.body) for talk in talks for prepared in talk.dispatched]
    received = [call.raw for call in fake.calls]
    assert sorted(dispatched) == sorted(received)
