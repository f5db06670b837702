"""Where the inherited part of a log ends, and how large a header may be, at the doors (R158, R159, R339)."""

import pytest

from everfold.session import doors
from everfold.session.errors import (
    SeedCutError,
    TooLargeError,
)
from everfold.session.session import Session
from tests.domain.kit import (
    HEADER,
    composition,
    counting_means,
    log,
    new_session,
    wire,
)

FORK = {**HEADER, "isSeeded": True}


def test_an_empty_forks_cut_stands_when_a_plain_marker_follows() -> None:
    """R339: the inherited marker at seq 0 is a cut of nothing, not an absence of one."""
    header = {**HEADER, "isSeeded": True, "parentSession": "p"}
    records = log(("session/end-seed", {"inherited": True}), ("session/end-seed", {}))

    adopted = doors.restore(header, records, composition(), counting_means())

    doors.check_inherited_cut(header, adopted.session.state)
    assert adopted.session.inherited_count == 0


def test_a_seeded_header_without_a_marker_or_a_cut_is_refused() -> None:
    """R339."""
    header = {**HEADER, "isSeeded": True}

    with pytest.raises(SeedCutError, match="no end-seed marker says inherited"):
        doors.restore(header, log(("turn/start", {"turn": 1})), composition(), counting_means())


def test_a_header_over_the_cap_is_refused() -> None:
    header = {**HEADER, "agentPreset": "x" * 3000}

    with pytest.raises(TooLargeError, match="2000 is the most"):
        doors.restore(header, (), composition(), counting_means(2000))


def test_only_a_fork_can_mark_what_is_inherited_v1_r339() -> None:
    session = new_session()

    with pytest.raises(SeedCutError, match="inherits nothing to mark"):
        session.append("session/end-seed", {"inherited": True})

    assert session.append("session/end-seed", {"inherited": False}).seq == 0


def test_an_event_of_exactly_the_cap_passes_every_door_v1() -> None:
    """A door gives its own event ids, which may be longer than those of the append."""
    means = counting_means(1000)
    session = Session.create(HEADER, composition(), means)
    empty = session.append("todo/write", {"t": ""}, event_id="e")
    room = 1000 - len(empty.topic) - len(empty.state)
    session.append("todo/write", {"t": "x" * room}, event_id="e")
    rows = session.collect_events()[1:]

    adopted = doors.restore(HEADER, wire(rows), composition(), means)

    assert len(rows[1].topic) + len(rows[1].state) == 1000
    assert adopted.rows[2].data == rows[1].data
