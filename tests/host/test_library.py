"""A session is an aggregate of the `eventsourcing` library: its own application saves and loads it."""

from collections.abc import Iterator

import pytest

from everfold.host.means import system_means
from everfold.projections.catalog import detached_composition
from everfold.session.projector import session_projector
from everfold.session.session import Session
from everfold.store.application import SessionApplication
from tests.domain.kit import text, user, view

HEADER = {"version": 3, "id": "s", "createdAt": 0, "isSeeded": False}


@pytest.fixture
def application(store_url: str) -> Iterator[SessionApplication]:
    """The library's application on an empty store."""
    with SessionApplication(url=store_url) as opened:
        yield opened


def test_the_librarys_application_saves_and_loads_a_session(
    application: SessionApplication,
) -> None:
    composition, means = detached_composition(), system_means()
    session = Session.create(HEADER, composition, means)
    session.append("user/message", user("u", text("hi")), {"surfaceOp": "append"})
    session.append("todo/write", {"todos": []})

    application.save(session)

    projector = session_projector(composition, means)
    loaded = application.repository.get("s", projector_func=projector)
    assert view(loaded) == view(session)
    assert loaded.version == 3
    assert list(session.collect_events()) == []


def test_the_notification_log_shows_a_sessions_events(application: SessionApplication) -> None:
    session = Session.create(HEADER, detached_composition(), system_means())
    session.append("turn/start", {"turn": 1})
    application.save(session)

    shown = application.notification_log.select(start=1, limit=10)

    assert [(each.originator_version, each.topic) for each in shown] == [
        (1, "session/created"),
        (2, "turn/start"),
    ]
