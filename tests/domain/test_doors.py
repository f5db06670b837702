"""Seeds and restores: group J, the unchecked-on-append rules of group C, and V1, V4."""

from typing import Any

import pytest

from everfold.session import doors
from everfold.session.composition import Composition
from everfold.session.doors import Adopted
from everfold.session.errors import (
    EnvelopeError,
    EventSequenceError,
    IdError,
    LosslessError,
    MessageShapeError,
    ProjectionMissingError,
    SeedCutError,
    SessionError,
    SessionHeaderError,
    SurfaceOpError,
    TooLargeError,
    UnknownEventError,
)
from everfold.session.frozen import Json
from tests.domain.kit import (
    HEADER,
    Record,
    append_all,
    composition,
    counting_means,
    image,
    log,
    nested,
    new_session,
    omit,
    record,
    system,
    text,
    user,
    view,
    wire,
)

FORK = {**HEADER, "isSeeded": True}


def restore(records: list[Any], header: Any = HEADER, **more: Any) -> Adopted:
    return doors.restore(header, records, composition(), counting_means(), **more)


def seed(records: list[Any], header: Any = HEADER, **more: Any) -> Adopted:
    return doors.seed(header, records, composition(), counting_means(), **more)


def types(adopted: Adopted) -> list[tuple[str, Json]]:
    return [(row.type, row.data) for row in adopted.rows[1:]]


@pytest.mark.parametrize("value", [None, 5, "text", ["type"], True])
@pytest.mark.parametrize("door", [restore, seed])
def test_an_event_that_is_no_object_is_refused_by_index_r3_r12(door: Any, value: Json) -> None:
    with pytest.raises(EnvelopeError, match=r"event 1 is [a-zN]+, not an object"):
        door([record("todo/write", 0, {}), value])


def test_envelope_faults_name_the_index_r12() -> None:
    with pytest.raises(EnvelopeError, match="event 1: the field 'x'"):
        restore([record("todo/write", 0, {}), record("todo/write", 1, {}, x=1)])


def test_every_refusal_notes_the_index_r12() -> None:
    with pytest.raises(SurfaceOpError) as caught:
        restore([record("user/message", 0, user())])

    assert caught.value.__notes__ == ["event 0 of the seed"]


def test_a_seed_is_copied_before_its_envelope_is_looked_at_r11() -> None:
    with pytest.raises(LosslessError, match=r"event 0\.data\[0\] is nan"):
        seed([record("todo/write", 5, [float("nan")], extra=1)])


def test_a_restored_record_is_not_copied_so_its_envelope_comes_first_r11_r148() -> None:
    with pytest.raises(EnvelopeError, match="the field 'extra'"):
        restore([record("todo/write", 5, [float("nan")], extra=1)])
    with pytest.raises(EnvelopeError, match="seq -0"):
        restore([{**record("todo/write", 0, {}), "seq": -0.0}])


def test_a_restored_marker_that_is_no_json_is_a_malformed_marker_r43() -> None:
    marker = {"op": "replace", "startSeq": float("nan"), "endSeq": 0}

    with pytest.raises(SurfaceOpError):
        restore([record("user/message", 0, user(), surfaceOp=marker)])


def test_the_payload_is_checked_before_the_sequence_r11() -> None:
    with pytest.raises(MessageShapeError):
        restore([record("user/message", 5, 7, surfaceOp="append")])


def test_the_sequence_is_checked_before_the_surface_r11() -> None:
    with pytest.raises(EventSequenceError):
        restore([record("user/message", 5, user())])


def test_a_lone_surrogate_in_a_field_is_named() -> None:
    with pytest.raises(LosslessError, match=r"event 0\.type is not valid Unicode"):
        restore([record("\ud800", 0, {}, ignorable=True)])


def test_what_may_be_appended_may_be_restored_at_the_nesting_limit() -> None:
    """V1: the record around the data does not count as a level of it."""
    session = new_session()
    append_all(session, log(("todo/write", nested(200)), ("user/message", user("u", nested(197)))))

    adopted = restore(wire(session.collect_events()))

    assert view(adopted.session)["messages"] == view(session)["messages"]


def test_nesting_beyond_the_limit_is_refused() -> None:
    with pytest.raises(LosslessError, match="nested deeper than 200"):
        restore(log(("todo/write", nested(201))))


def test_an_event_over_the_cap_is_refused() -> None:
    means = counting_means(max_event_bytes=1000)

    with pytest.raises(TooLargeError) as caught:
        doors.restore(HEADER, log(("todo/write", "x" * 1000)), composition(), means)

    assert (caught.value.seq, caught.value.max_bytes) == (0, 1000)


@pytest.mark.parametrize("door", [restore, seed])
def test_a_required_event_of_an_unknown_type_is_refused_v4(door: Any) -> None:
    with pytest.raises(UnknownEventError) as caught:
        door([record("x/new", 0, {})])

    assert (caught.value.type, caught.value.seq) == ("x/new", 0)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"surfaceOp": "append"},
        {"surfaceOp": None, "sourceEventSeqs": 5},
        {"sourceEventSeqs": None},
        {"sourceEventSeqs": [[1], "x"]},
        {"surfaceOp": {"op": 1}, "sourceEventSeqs": []},
    ],
)
def test_an_unknown_ignorable_event_is_kept_as_it_is_r46(fields: Record) -> None:
    records = [record("x/new", 0, [1, None], ignorable=True, **fields)]

    adopted = restore(records)

    assert adopted.rows[1].record() == records[0]
    assert list(adopted.session.nodes) == []


def test_ignorable_frees_a_known_type_from_nothing_r48() -> None:
    with pytest.raises(SurfaceOpError):
        restore([record("turn/start", 0, {}, ignorable=True, surfaceOp="append")])


def test_a_missing_interpreter_refuses_the_log_r101() -> None:
    records = log(("user/message", user("u", image())), ("image/offload", omit((0, [0]))))

    with pytest.raises(ProjectionMissingError) as caught:
        doors.restore(HEADER, records, Composition(), counting_means())

    assert caught.value.seq == 1


def test_restoring_looks_at_the_header_first_r149() -> None:
    with pytest.raises(SessionHeaderError):
        restore([None], header={**HEADER, "version": 2})


def test_seeding_looks_at_the_events_first_r149() -> None:
    with pytest.raises(EnvelopeError):
        seed([None], header={**HEADER, "version": 2})


@pytest.mark.parametrize("door", [restore, seed])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 2),
        ("version", "3"),
        ("version", True),
        ("createdAt", -1),
        ("createdAt", 0.5),
        ("createdAt", None),
        ("isSeeded", 1),
        ("isSeeded", None),
        ("cwd", "relative/path"),
        ("cwd", None),
        ("cwd", 5),
        ("parentSession", 5),
        ("origin", "user"),
        ("delegationDepth", -1),
        ("delegationDepth", True),
        ("agentPreset", 5),
        ("seedLength", 0),
    ],
)
def test_a_bad_header_field_is_refused_by_name_r150_to_r152(
    door: Any, name: str, value: Json
) -> None:
    with pytest.raises(SessionHeaderError, match=name):
        door([], header={**HEADER, name: value})


@pytest.mark.parametrize("door", [restore, seed])
@pytest.mark.parametrize("header", [None, [], "s", 5])
def test_a_header_that_is_no_object_is_refused(door: Any, header: Any) -> None:
    with pytest.raises(SessionHeaderError, match="not an object"):
        door([], header=header)


@pytest.mark.parametrize("door", [restore, seed])
@pytest.mark.parametrize("id_", ["", "a/b", "..", "a\\b", "a\nb", "x" * 201, "a\x7fb"])
def test_a_header_id_that_cannot_be_one_is_refused(door: Any, id_: str) -> None:
    with pytest.raises(IdError):
        door([], header={**HEADER, "id": id_})


@pytest.mark.parametrize("door", [restore, seed])
@pytest.mark.parametrize("id_", [None, 5, ["s"]])
def test_a_header_id_that_is_no_text_is_refused(door: Any, id_: Json) -> None:
    with pytest.raises(SessionError):
        door([], header={**HEADER, "id": id_})


def test_unknown_header_fields_are_kept_r152() -> None:
    assert restore([], header={**HEADER, "x": [1]}).session.header["x"] == [1]


def test_a_header_with_a_value_json_cannot_hold_is_refused() -> None:
    with pytest.raises(LosslessError, match=r"header\.x is nan"):
        restore([], header={**HEADER, "x": float("nan")})


def test_a_session_without_a_seed_has_no_marker_r153() -> None:
    assert [row.type for row in new_session().collect_events()] == ["session/created"]


def test_an_empty_seed_gets_a_plain_marker_r154() -> None:
    adopted = seed([])

    assert types(adopted) == [("session/end-seed", {})]
    assert (adopted.session.first_live_seq, adopted.session.inherited_count) == (0, 0)


def test_a_seed_gets_a_plain_marker_after_its_last_event_r156_r157() -> None:
    adopted = seed(log(("todo/write", {})))

    assert types(adopted) == [("todo/write", {}), ("session/end-seed", {})]
    assert adopted.session.first_live_seq == 1


@pytest.mark.parametrize("door", [restore, seed])
def test_no_second_marker_follows_a_marker_r156(door: Any) -> None:
    adopted = door(log(("session/end-seed", {})))

    assert types(adopted) == [("session/end-seed", {})]
    assert adopted.added == ()
    assert adopted.session.first_live_seq == 1


def test_a_fork_gets_its_marker_even_after_a_marker_r155() -> None:
    adopted = seed(log(("session/end-seed", {})), header=FORK)

    assert types(adopted)[1:] == [("session/end-seed", {"inherited": True})]
    assert adopted.session.inherited_count == 1


def test_a_fork_of_nothing_inherits_nothing_but_is_marked() -> None:
    adopted = seed([], header=FORK, inherited_count=0)

    assert types(adopted) == [("session/end-seed", {"inherited": True})]
    assert adopted.session.inherited_count == 0


@pytest.mark.parametrize(
    ("header", "count"), [(HEADER, 1), (FORK, 0), (FORK, 2), (FORK, -1), (HEADER, 5)]
)
def test_a_seed_is_inherited_whole_or_not_at_all_r158_r159(header: Any, count: int) -> None:
    with pytest.raises(SeedCutError):
        seed(log(("todo/write", {})), header=header, inherited_count=count)


def test_a_restored_fork_keeps_its_cut_r160_r161() -> None:
    records = log(("todo/write", {}), ("session/end-seed", {"inherited": True}), ("todo/write", {}))

    adopted = restore(records, header=FORK)

    assert types(adopted)[3:] == [("session/end-seed", {})]
    assert (adopted.session.inherited_count, adopted.session.first_live_seq) == (1, 3)


@pytest.mark.parametrize(("header", "count"), [(HEADER, 1), (FORK, 4), (FORK, -1)])
def test_a_cut_that_does_not_fit_the_log_is_refused_r159(header: Any, count: int) -> None:
    with pytest.raises(SeedCutError):
        restore(log(("todo/write", {})), header=header, inherited_count=count)


def test_an_inherited_marker_under_an_unseeded_header_is_refused_r339() -> None:
    with pytest.raises(SeedCutError):
        restore(log(("todo/write", {}), ("session/end-seed", {"inherited": True})))


def test_the_rows_hold_all_that_is_to_be_stored_in_order() -> None:
    adopted = restore(log(("system/message", system("s", text("x"))), ("user/message", user())))

    assert [row.originator_version for row in adopted.rows] == [1, 2, 3, 4]
    assert {row.originator_id for row in adopted.rows} == {"s"}
    assert len({row.event_id for row in adopted.rows}) == 4
    assert list(adopted.session.collect_events()) == []


def test_a_seed_shares_nothing_with_the_records_r148() -> None:
    records = log(("user/message", user("u", text("x"))))
    adopted = seed(records)

    records[0]["data"]["content"].append(text("y"))

    assert view(adopted.session)["messages"] == [(0, user("u", text("x")))]


def test_the_marker_frees_nothing_but_stands_last_r162() -> None:
    adopted = restore(log(("compaction/start", {"compactionId": "k", "turn": None})))

    start = adopted.session.latest("compaction/start")
    marker = adopted.session.latest("session/end-seed")
    assert start is not None
    assert marker is not None
    assert marker.seq > start.seq


def test_a_session_taken_over_is_marked_once_r156() -> None:
    session = new_session()
    session.append("todo/write", {})

    first, second = doors.resume_marker(session), doors.resume_marker(session)

    assert [row.seq for row in first] == [1]
    assert second == ()
