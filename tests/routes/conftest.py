"""Fixtures of the routes: a strict provider, a store, and the check that what was prepared was sent."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.route import Route
from tests.providers.strict_fake import StrictFake, strict_fake
from tests.routes.talk import Talk, Talking
from tests.routes.wires import WIRES

MakeTalk = Callable[..., Talk]


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


UNCHECKED = {"max_body_bytes": None, "body_quantum": 1, "max_image_bytes": None, "max_edge": None}
"""Settings of a route that knows nothing of the provider's limits."""


@pytest.fixture(params=sorted(WIRES))
def make_talk(
    request: pytest.FixtureRequest,
    fake: StrictFake,
    versions: RequestVersions,
    tmp_path: Path,
    talking: Talking,
) -> MakeTalk:
    """Makes a talk on each wire in turn; the route knows the limits that it is given alone."""

    def make(**limits: Any) -> Talk:
        settings = {**UNCHECKED, **limits}
        return talking(WIRES[request.param](fake, versions, tmp_path, limits=settings))

    return make
