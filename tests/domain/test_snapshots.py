"""A state restored from a snapshot is the folded state, and a snapshot that does not fit is ignored."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.session.composition import Composition
from everfold.session.errors import CorruptStreamError
from everfold.session.events import Recorded
from everfold.session.frozen import json_equal, thaw
from everfold.session.ports import StoredSnapshot
from everfold.session.session import Session
from everfold.session.snapshot import snapshot_topic, state_of, take_snapshot
from everfold.session.state import SessionState, StateFold
from everfold.session.vocabulary import EventType
from tests.domain.kit import (
    append_all,
    composition,
    counting_means,
    image,
    log,
    new_session,
    omit,
    user,
    view,
)
from tests.domain.logs import logs
from tests.domain.model import Log

Fetch = Callable[[Sequence[int]], list[Recorded]]


def fetching(rows: list[Recorded]) -> Fetch:
    """Read rows by seq, as a store does."""
    return lambda seqs: [rows[seq] for seq in seqs]


def folded(rows: list[Recorded], in_force: Composition) -> SessionState:
    fold = StateFold(SessionState.empty(), in_force)
    fold.run(rows)
    return fold.state()


def rows_of(log: Log) -> list[Recorded]:
    session = new_session(header=log.header())
    return append_all(session, log.records)


@given(logs(), st.data())
def test_a_session_from_any_snapshot_shows_what_the_live_one_does(
    log: Log, data: st.DataObject
) -> None:
    rows, in_force = rows_of(log), composition()
    cut = data.draw(st.integers(0, len(rows)))
    live = Session(log.header(), in_force, counting_means(), state=folded(rows, in_force))

    snapshot = take_snapshot("s", folded(rows[:cut], in_force), in_force)
    state = state_of(snapshot, in_force, fetching(rows), fetching(rows))
    assert state is not None
    restored = Session(log.header(), in_force, counting_means(), state=state)
    restored.catch_up(rows[cut:])

    shown, wanted = view(restored), view(live)
    assert json_equal(
        {**shown, "messages": [list(pair) for pair in shown["messages"]]},
        {**wanted, "messages": [list(pair) for pair in wanted["messages"]]},
    )


@given(logs(), st.data())
def test_a_session_from_a_snapshot_decides_like_the_live_one(log: Log, data: st.DataObject) -> None:
    rows, in_force = rows_of(log), composition()
    cut = data.draw(st.integers(0, len(rows)))
    snapshot = take_snapshot("s", folded(rows[:cut], in_force), in_force)
    state = state_of(snapshot, in_force, fetching(rows), fetching(rows))
    assert state is not None
    restored = Session(log.header(), in_force, counting_means(), state=state)

    again = append_all(restored, log.records[cut:])

    assert [{**row.record(), "time": 0} for row in again] == [
        {**row.record(), "time": 0} for row in rows[cut:]
    ]


def offloaded() -> list[Recorded]:
    return append_all(
        new_session(),
        log(("user/message", user("u", image(1))), ("image/offload", omit((0, [0])))),
    )


def test_a_snapshot_of_a_snapshot_is_the_same() -> None:
    rows, in_force = offloaded(), composition()
    first = take_snapshot("s", folded(rows, in_force), in_force)

    state = state_of(first, in_force, fetching(rows), fetching(rows))

    assert state is not None
    assert take_snapshot("s", state, in_force) == first


def test_messages_that_are_not_projected_are_fetched_when_they_are_read() -> None:
    rows = append_all(new_session(), log(*(("user/message", user(f"u{n}")) for n in range(9))))
    in_force, asked = composition(), list[int]()

    def fetch(seqs: Sequence[int]) -> list[Recorded]:
        asked.extend(seqs)
        return fetching(rows)(seqs)

    snapshot = take_snapshot("s", folded(rows, in_force), in_force)
    state = state_of(snapshot, in_force, fetch, fetching(rows))
    assert state is not None
    assert asked == []
    found = state.surface.events.find(4)

    assert found is not None
    assert found.data == user("u4")
    assert asked == [4]


@pytest.mark.parametrize(
    "other",
    [
        lambda c: c.register(IMAGE_OFFLOAD) and c.declare([EventType("x/new")]),
        lambda c: None,
    ],
)
def test_a_snapshot_of_another_composition_is_ignored(
    other: Callable[[Composition], object],
) -> None:
    rows, in_force = offloaded(), composition()
    snapshot = take_snapshot("s", folded(rows, in_force), in_force)
    another = Composition()
    other(another)

    assert state_of(snapshot, another, fetching(rows), fetching(rows)) is None
    assert snapshot.topic == snapshot_topic(in_force) != snapshot_topic(another)


@pytest.mark.parametrize("damage", [b"", b"junk"])
def test_a_damaged_snapshot_is_ignored(damage: bytes) -> None:
    rows, in_force = offloaded(), composition()
    good = take_snapshot("s", folded(rows, in_force), in_force)

    bad = StoredSnapshot("s", good.version, good.topic, damage)
    moved = StoredSnapshot("s", good.version + 1, good.topic, good.state)

    assert state_of(bad, in_force, fetching(rows), fetching(rows)) is None
    assert state_of(moved, in_force, fetching(rows), fetching(rows)) is None


def test_projected_messages_come_back_frozen() -> None:
    rows, in_force = offloaded(), composition()
    snapshot = take_snapshot("s", folded(rows, in_force), in_force)

    state = state_of(snapshot, in_force, fetching(rows), fetching(rows))

    assert state is not None
    message = state.surface.messages[0]
    assert thaw(message) == user("u", image(1, offloaded=True))
    with pytest.raises(TypeError):
        message["content"].append(1)


def test_a_node_whose_row_is_gone_is_an_error_and_not_left_out() -> None:
    session = new_session()
    append_all(
        session, log(("user/message", user("u")), ("todo/write", {}), ("user/message", user("v")))
    )
    rows = {row.seq: row for row in session.collect_events()}
    taken = take_snapshot("s", session.state, session.composition)
    state = state_of(
        taken, session.composition, lambda seqs: [], lambda seqs: [rows[s] for s in seqs]
    )
    restored = Session(session.header, session.composition, session.means, state=state)

    with pytest.raises(CorruptStreamError, match="session 's' cannot be read at seq 0"):
        restored.messages()


def test_a_snapshot_of_rows_that_are_gone_is_ignored() -> None:
    session = new_session()
    append_all(session, log(("user/message", user("u"))))
    taken = take_snapshot("s", session.state, session.composition)

    assert state_of(taken, session.composition, lambda seqs: [], lambda seqs: []) is None
