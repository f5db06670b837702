"""Properties over whole logs: every way of reading gives what the naive model says."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.session import doors
from everfold.session.detached import FoldResult, fold_surface
from everfold.session.errors import SessionError
from everfold.session.events import Event, Recorded
from everfold.session.frozen import Json, json_equal, thaw
from everfold.session.session import Session
from everfold.session.state import SessionState, StateFold
from tests.domain.kit import append_all, composition, counting_means, new_session, view
from tests.domain.logs import Broken, faulty_logs, logs
from tests.domain.model import Log

Draw = Callable[[st.SearchStrategy[Any]], Any]


def expected(log: Log) -> dict[str, Json]:
    """What a session over this log must show."""
    return {
        "next_seq": len(log.records),
        "version": len(log.records) + 1,
        "nodes": list(log.nodes),
        "messages": list(log.messages),
        "replace_generation": log.replace_generation,
        "content_generation": log.content_generation,
        "inherited_count": log.inherited_count,
        "is_turn_open": log.is_turn_open,
    }


def live(log: Log) -> Session:
    """A session to which the log was appended, event by event."""
    session = new_session(header=log.header())
    append_all(session, log.records)
    return session


def rows_of(log: Log) -> list[Recorded]:
    """The stored rows of the log, header left out."""
    session = live(log)
    return list(session.collect_events())[1:]


def over(log: Log, state: SessionState) -> Session:
    """A session over a folded state."""
    return Session(log.header(), composition(), counting_means(), state=state)


def same(left: Json, right: Json) -> bool:
    """Whether two views are equal as JSON."""
    return json_equal(_plain(left), _plain(right))


def _plain(value: dict[str, Json]) -> Json:
    return {**value, "messages": [list(pair) for pair in value["messages"]]}


@given(logs())
def test_a_live_session_shows_what_the_model_says(log: Log) -> None:
    session = live(log)

    assert same(view(session), expected(log))


@given(logs())
def test_a_restored_session_shows_what_the_live_one_does(log: Log) -> None:
    """R163."""
    adopted = doors.restore(log.header(), log.records, composition(), counting_means())

    shown = view(adopted.session)
    added = len(adopted.added)
    want = expected(log)
    assert same(
        shown,
        {**want, "next_seq": want["next_seq"] + added, "version": want["version"] + added},
    )
    assert adopted.session.first_live_seq == len(log.records)


@given(logs())
def test_a_restore_stores_the_records_that_it_was_given(log: Log) -> None:
    adopted = doors.restore(log.header(), log.records, composition(), counting_means())

    stored = [row.record() for row in adopted.rows[1 : len(log.records) + 1]]
    assert json_equal(stored, list(log.records))


@given(logs())
def test_stored_rows_fold_to_what_the_live_session_shows(log: Log) -> None:
    rows = rows_of(log)

    fold = StateFold(SessionState.empty(), composition())
    fold.run(rows)

    assert same(view(over(log, fold.state())), expected(log))


@given(logs(), st.data())
def test_a_fold_may_be_split_anywhere(log: Log, data: st.DataObject) -> None:
    rows = rows_of(log)
    cut = data.draw(st.integers(0, len(rows)))
    in_force = composition()

    first = StateFold(SessionState.empty(), in_force)
    first.run(rows[:cut])
    second = StateFold(first.state(), in_force)
    second.run(rows[cut:])

    assert same(view(over(log, second.state())), expected(log))


@given(logs())
def test_a_detached_fold_shows_what_the_live_session_does(log: Log) -> None:
    """R86."""
    result = fold_surface([Event.of(record) for record in log.records], composition())

    assert list(result.surface.nodes) == list(log.nodes)
    shown = [[seq, thaw(message)] for seq, message in result.messages()]
    assert json_equal(shown, [list(pair) for pair in log.messages])
    assert result.surface.replace_generation == log.replace_generation == len(result.replacements)
    assert result.surface.content_generation == log.content_generation


@given(logs(), st.data())
def test_a_window_shows_the_part_of_the_surface_that_it_holds(
    log: Log, data: st.DataObject
) -> None:
    """R182 to R186: it agrees with the whole, or an event reaches before it, or its head differs."""
    base = data.draw(st.integers(0, len(log.records)))
    events = [Event.of(record) for record in log.records[base:]]

    result = _fold_or_refusal(events, base)

    if isinstance(result, SessionError):
        assert _reaches_before(log, result, base)
        return
    assert list(result.surface.nodes) == [seq for seq in log.nodes if seq >= base]
    shown = [[seq, thaw(message)] for seq, message in result.messages()]
    assert json_equal(shown, [[seq, m] for seq, m in log.messages if seq >= base])


def _fold_or_refusal(events: list[Event], base: int) -> FoldResult | SessionError:
    try:
        return fold_surface(events, composition(), base_seq=base)
    except SessionError as error:
        return error


def _reaches_before(log: Log, error: SessionError, base: int) -> bool:
    assert error.seq is not None
    record = log.records[error.seq]
    if error.code == "system-head":
        return base > 0
    if error.code == "offload-target":
        return any(target["seq"] < base for target in record["data"]["targets"])
    marker = record["surfaceOp"]
    return error.code == "replace-range" and min(marker["startSeq"], marker["endSeq"]) < base


@given(logs(), st.data())
def test_what_was_handed_out_stays_as_it_was(log: Log, data: st.DataObject) -> None:
    """R120, R127."""
    cut = data.draw(st.integers(0, len(log.records)))
    session = new_session(header=log.header())
    append_all(session, log.records[:cut])
    nodes, messages = session.nodes, session.messages()
    before = (list(nodes), [(seq, thaw(message)) for seq, message in messages.items()])

    append_all(session, log.records[cut:])

    assert (list(nodes), [(seq, thaw(message)) for seq, message in messages.items()]) == before


@pytest.mark.parametrize("door", [doors.restore, doors.seed])
@given(broken=faulty_logs())
def test_a_door_refuses_a_log_with_one_fault(door: Callable[..., object], broken: Broken) -> None:
    with pytest.raises(SessionError) as caught:
        door(broken.prefix.header(), broken.records, composition(), counting_means())

    assert caught.value.code == broken.fault.code, broken.fault.name
