"""Properties of deciding: a refusal or a dropped decision is nothing, a batch is its events."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.session.deciding import AppendEvent
from everfold.session.doors import recorded_of
from everfold.session.errors import SessionError
from everfold.session.events import Event, Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session
from tests.domain import kit
from tests.domain.kit import Record, append_all, image, new_session, options_of, user, view
from tests.domain.logs import Broken, faulty_logs, logs
from tests.domain.model import Log


def commands(records: Sequence[Record]) -> list[AppendEvent]:
    """The wishes that give these records."""
    return [AppendEvent(each["type"], each["data"], options_of(each) or None) for each in records]


def session_of(log: Log) -> Session:
    """A session to which the log was appended."""
    session = new_session(header=log.header())
    append_all(session, log.records)
    return session


def timeless(rows: Sequence[Recorded]) -> list[Json]:
    """Records without their time."""
    return [{**row.record(), "time": 0} for row in rows if row.seq >= 0]


@given(faulty_logs(appendable=True))
def test_a_refused_append_changes_nothing(broken: Broken) -> None:
    """R141, R142, and V1: an append refuses what a door refuses, by the same code."""
    session = session_of(broken.prefix)
    before, latest = view(session), dict(session.state.latest)
    fault = broken.fault

    with pytest.raises(SessionError) as caught:
        append_all(session, [fault.record])

    assert caught.value.code == fault.code, fault.name
    assert view(session) == before
    assert dict(session.state.latest) == latest
    assert session.state.surface.used.keys() <= {"image/offload"}
    assert len(session.collect_events()) == len(broken.prefix.records) + 1


@given(faulty_logs(appendable=True))
def test_appends_after_a_refusal_are_as_without_it(broken: Broken) -> None:
    """R142."""
    clean, spoiled = session_of(broken.prefix), session_of(broken.prefix)
    with pytest.raises(SessionError):
        append_all(spoiled, [broken.fault.record])

    for session in (clean, spoiled):
        append_all(session, kit.log(("user/message", user("x", image())), ("todo/write", {})))

    assert view(spoiled) == view(clean)
    assert timeless(spoiled.collect_events()) == timeless(clean.collect_events())


@given(faulty_logs(appendable=True), st.data())
def test_a_batch_with_one_fault_is_refused_whole(broken: Broken, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(broken.prefix.records)))
    session = new_session(header=broken.prefix.header())
    append_all(session, broken.records[:cut])
    before = view(session)

    with pytest.raises(SessionError) as caught:
        session.append_batch(commands(broken.records[cut:]))

    assert caught.value.code == broken.fault.code
    assert view(session) == before
    assert len(session.collect_events()) == cut + 1
    append_all(session, broken.prefix.records[cut:])
    assert session.next_seq == len(broken.prefix.records)


@given(logs(), st.data())
def test_a_batch_is_its_events_one_by_one(log: Log, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log.records)))
    single = session_of(log)
    batched = new_session(header=log.header())

    batched.append_batch(commands(log.records[:cut]))
    batched.append_batch(commands(log.records[cut:]))

    assert view(batched) == view(single)
    assert timeless(batched.collect_events()) == timeless(single.collect_events())


@given(logs(), st.data())
def test_a_decision_that_is_dropped_was_never_made(log: Log, data: st.DataObject) -> None:
    """R119."""
    cut = data.draw(st.integers(0, len(log.records)))
    session = new_session(header=log.header())
    append_all(session, log.records[:cut])
    before = view(session)

    session.decide(commands(log.records[cut:]))

    assert view(session) == before
    append_all(session, log.records[cut:])
    assert view(session) == view(session_of(log))


@given(logs(), logs(), st.data())
def test_of_two_decisions_on_one_history_either_may_be_taken(
    log: Log, other: Log, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log.records)))
    session = new_session(header=log.header())
    append_all(session, log.records[:cut])
    wanted = session.decide(commands(log.records[cut:]))
    session.decide([AppendEvent("todo/write", {"n": n}) for n in range(len(other.records))])

    session.accept(wanted)

    assert view(session) == view(session_of(log))


@given(logs())
def test_a_record_is_stored_as_the_bytes_it_was_read_from(log: Log) -> None:
    rows = [row for row in session_of(log).collect_events() if row.seq >= 0]

    again = [recorded_of(Event.of(row.record()), "s", row.event_id) for row in rows]

    assert again == rows


@given(logs())
def test_what_others_stored_is_caught_up_with(log: Log) -> None:
    rows = session_of(log).collect_events()
    follower = new_session(header=log.header())

    for row in rows[1:]:
        follower.catch_up([row])

    assert view(follower) == view(session_of(log))
