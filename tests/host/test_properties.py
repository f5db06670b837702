"""Properties over whole logs on both databases: every way of reading a session agrees."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.session.deciding import AppendEvent
from everfold.session.detached import fold_surface, messages_of
from everfold.session.errors import SessionError
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.domain.kit import options_of, view, wishes_of
from tests.domain.logs import Broken, faulty_logs, logs
from tests.domain.model import Log
from tests.host.kit import another

unseeded = logs().filter(lambda log: not log.is_seeded and log.inherited_count == 0)


def stored(sessions: Sessions, log: Log) -> str:
    """Append a log to a new session, one event after another; return its id."""
    name = sessions.create(uuid.uuid4().hex).id
    for wish in wishes_of(log.records):
        sessions.append_batch(name, [wish])
    return name


def shown(session: Session) -> dict[str, object]:
    """Return what can be seen of a session, its id apart."""
    return view(session)


@given(log=unseeded)
def test_live_and_restored_sessions_are_alike(
    store: SessionStore, sessions: Sessions, log: Log
) -> None:
    name = stored(sessions, log)

    live, restored = shown(sessions.load(name)), shown(another(store).load(name))

    assert live == restored
    assert live["nodes"] == list(log.nodes)
    assert live["messages"] == list(log.messages)


@given(log=unseeded, data=st.data())
def test_a_snapshot_at_any_point_changes_nothing(
    store: SessionStore, sessions: Sessions, log: Log, data: st.DataObject
) -> None:
    name = sessions.create(uuid.uuid4().hex).id
    cut = data.draw(st.integers(0, len(log.records)))
    for number, wish in enumerate(wishes_of(log.records)):
        if number == cut:
            sessions.snapshot(name)
        sessions.append_batch(name, [wish])

    restored = another(store).load(name)

    assert shown(restored) == shown(sessions.load(name))


@given(log=unseeded, data=st.data())
def test_restored_as_of_a_seq_is_the_fold_of_the_prefix(
    sessions: Sessions, log: Log, data: st.DataObject
) -> None:
    if not log.records:
        return
    name = stored(sessions, log)
    sessions.snapshot(name)
    at = data.draw(st.integers(0, len(log.records) - 1))

    session = sessions.load(name, at=at)

    prefix = list(sessions.log(name, last=at))
    folded = fold_surface(prefix, detached_composition()).surface
    assert list(session.nodes) == list(folded.nodes)
    assert list(session.messages().items()) == messages_of(folded)
    assert session.content_generation == folded.content_generation
    assert session.replace_generation == folded.replace_generation
    assert session.next_seq == at + 1


@given(log=unseeded)
def test_a_fork_of_the_whole_log_shows_what_the_parent_does(sessions: Sessions, log: Log) -> None:
    name = stored(sessions, log)
    parent = sessions.load(name)
    if parent.is_turn_open:
        return

    child = sessions.load(sessions.fork(name, child_id=uuid.uuid4().hex))

    assert list(child.nodes) == list(parent.nodes)
    assert child.messages() == parent.messages()
    assert child.content_generation == parent.content_generation
    assert child.next_seq == parent.next_seq + 1
    assert child.inherited_count == parent.next_seq


@given(broken=faulty_logs(appendable=True))
def test_a_refused_batch_changes_nothing(
    store: SessionStore, sessions: Sessions, broken: Broken
) -> None:
    if broken.prefix.is_seeded or broken.prefix.inherited_count:
        return
    name = stored(sessions, broken.prefix)
    before = shown(sessions.load(name))
    record = broken.fault.record
    wish = AppendEvent(record["type"], record["data"], options_of(record) or None)
    innocent = AppendEvent("todo/write", {"todos": []})

    with pytest.raises(SessionError):
        sessions.append_batch(name, [innocent, wish])

    assert shown(sessions.load(name)) == before
    assert shown(another(store).load(name)) == before
    assert sessions.append(name, "todo/write", {"todos": []}).seq == before["next_seq"]


@given(log=unseeded, split=st.integers(0, 14))
def test_a_session_that_lost_a_race_equals_a_fresh_load(
    store: SessionStore, sessions: Sessions, log: Log, split: int
) -> None:
    name = sessions.create(uuid.uuid4().hex).id
    mine, others = wishes_of(log.records)[:split], wishes_of(log.records)[split:]
    sessions.append_batch(name, mine) if mine else sessions.load(name)
    rival = another(store)
    for wish in others:
        rival.append_batch(name, [wish])

    sessions.append(name, "todo/write", {"todos": []})

    assert shown(sessions.load(name)) == shown(another(store).load(name))
