"""Publications that append: of the same session they are refused, whatever stays in memory."""

from collections.abc import Sequence

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.session.errors import ReentrantAppendError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.host.kit import hello, types


def test_an_append_inside_a_publication_is_refused_by_a_host_that_keeps_nothing_r145(
    store: SessionStore,
) -> None:
    sessions = Sessions(store, detached_composition(), cached=0)
    sessions.create("s")
    refused: list[str] = []

    def append_more(session: Session, _events: Sequence[Recorded]) -> None:
        try:
            sessions.append(session.id, "todo/write", {})
        except ReentrantAppendError as error:
            refused.append(error.code)

    sessions.publications.append(append_more)
    sessions.append_batch("s", [hello()])

    assert refused == ["reentrant"]
    assert types(sessions, "s") == ["user/message"]


def test_a_publication_may_append_to_another_session(
    store: SessionStore, sessions: Sessions
) -> None:
    sessions.create("s")
    sessions.create("journal")

    def note(session: Session, _events: Sequence[Recorded]) -> None:
        if session.id == "s":
            sessions.append("journal", "todo/write", {})

    sessions.publications.append(note)
    sessions.append_batch("s", [hello()])
    sessions.append_batch("s", [hello()])

    assert types(sessions, "journal") == ["todo/write", "todo/write"]
