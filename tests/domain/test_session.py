"""The session as an aggregate: deciding, staging, batches, limits (group I with V1)."""

import pytest

from everfold.session.deciding import AppendEvent, message, replacement
from everfold.session.errors import (
    EventSequenceError,
    IdError,
    LosslessError,
    MessageShapeError,
    PayloadError,
    SessionError,
    SessionHeaderError,
    TooLargeError,
    UnknownEventError,
)
from everfold.session.events import Origin
from everfold.session.frozen import Json
from everfold.session.session import Session, header_of
from tests.domain.kit import (
    APPEND,
    HEADER,
    append_all,
    composition,
    counting_means,
    log,
    nested,
    new_session,
    system,
    text,
    user,
    view,
)


@pytest.fixture
def session() -> Session:
    return new_session()


def test_a_new_session_stages_its_header() -> None:
    session = Session.create({**HEADER, "cwd": "/srv", "x": [1]}, composition(), counting_means())

    (created,) = session.collect_events()

    assert (created.type, created.seq, created.originator_version) == ("session/created", -1, 1)
    assert header_of(created) == {**HEADER, "cwd": "/srv", "x": [1]}
    assert "id" not in created.data
    assert (session.id, session.version, session.next_seq) == ("s", 1, 0)


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ({}, IdError),
        ({**HEADER, "id": "a/b"}, IdError),
        ({**HEADER, "version": 4}, SessionHeaderError),
        ({**HEADER, "x": float("nan")}, LosslessError),
        ({**HEADER, "x": "\ud800"}, LosslessError),
    ],
)
def test_a_bad_header_makes_no_session(header: Json, error: type[SessionError]) -> None:
    with pytest.raises(error):
        Session.create(header, composition(), counting_means())


def test_staged_events_are_collected_once(session: Session) -> None:
    session.append("todo/write", {})

    assert [row.seq for row in session.collect_events()] == [-1, 0]
    assert list(session.collect_events()) == []


def test_an_event_gets_the_next_seq_and_the_clocks_time_r137(session: Session) -> None:
    rows = [session.append("todo/write", {"n": n}) for n in range(3)]

    assert [row.seq for row in rows] == [0, 1, 2]
    assert [row.time for row in rows] == sorted({row.time for row in rows})
    assert [row.originator_version for row in rows] == [2, 3, 4]


def test_a_batch_has_one_time_and_ids_of_its_own(session: Session) -> None:
    rows = session.append_batch([AppendEvent("todo/write", n) for n in range(3)])

    assert len({row.time for row in rows}) == 1
    assert len({row.event_id for row in rows}) == 3


def test_an_empty_batch_is_nothing(session: Session) -> None:
    before = view(session)

    assert session.append_batch([]) == ()
    assert view(session) == before


def test_an_empty_decision_undoes_nothing_that_was_appended_since(session: Session) -> None:
    nothing = session.decide([])
    session.append("user/message", user(), APPEND)

    session.accept(nothing)

    assert (session.next_seq, list(session.nodes)) == (1, [0])


def test_a_decision_is_accepted_once_and_at_its_place(session: Session) -> None:
    decision = session.decide([AppendEvent("todo/write", {})])
    session.accept(decision)

    with pytest.raises(EventSequenceError):
        session.accept(decision)

    assert session.next_seq == 1


def test_an_accepted_decision_is_not_staged(session: Session) -> None:
    session.collect_events()

    session.accept(session.decide([AppendEvent("todo/write", {})]))

    assert list(session.collect_events()) == []


def test_data_is_copied_and_frozen_r140(session: Session) -> None:
    data = user("u", text("x"))
    row = session.append("user/message", data, APPEND)

    data["content"].append(text("y"))

    assert row.data == user("u", text("x"))
    assert session.messages()[0] == user("u", text("x"))
    with pytest.raises(TypeError):
        row.data["content"].append(1)


def test_options_are_copied_r137(session: Session) -> None:
    append_all(session, log(("user/message", user("u")), ("user/message", user("v"))))
    sources = [0, 1]
    marker = {"op": "replace", "startSeq": 0, "endSeq": 1}

    row = session.append(
        "user/message", user("n"), {"surfaceOp": marker, "sourceEventSeqs": sources}
    )
    sources.clear()
    marker["endSeq"] = 5

    assert row.surface_op == {"op": "replace", "startSeq": 0, "endSeq": 1}
    assert row.source_event_seqs == [0, 1]


def test_end_points_with_zero_fraction_are_stored_whole(session: Session) -> None:
    append_all(session, log(("user/message", user("u"))))
    marker = {"op": "replace", "startSeq": 0.0, "endSeq": 0}

    row = session.append("user/message", user("n"), {"surfaceOp": marker, "sourceEventSeqs": [0.0]})

    assert b'"startSeq":0,' in row.state
    assert b'"sourceEventSeqs":[0]' in row.state


def test_wishes_have_short_forms(session: Session) -> None:
    session.append_batch(
        [
            message("user/message", user("u"), event_id="mine"),
            replacement("user/message", user("v"), start=0, end=0, sources=[0]),
        ]
    )

    assert list(session.nodes) == [1]
    assert session.collect_events()[1].event_id == "mine"


@pytest.mark.parametrize("event_id", ["", "\ud800", "x" * 201, "é" * 101, 5, b"id", ["id"], True])
def test_an_event_id_is_short_valid_text(session: Session, event_id: str) -> None:
    before = view(session)

    with pytest.raises(IdError):
        session.append("todo/write", {}, event_id=event_id)

    assert view(session) == before


@pytest.mark.parametrize("event_id", ["a", "x" * 200, 'q"\\', "\x00", "\U0001f600"])
def test_an_event_id_is_kept_as_it_is(session: Session, event_id: str) -> None:
    assert session.append("todo/write", {}, event_id=event_id).event_id == event_id


def test_the_origin_is_kept_beside_the_payload(session: Session) -> None:
    row = session.append("todo/write", {"a": 1}, origin=Origin('an"a', "c\x00"))

    envelope = row.envelope()
    assert (envelope["actor"], envelope["correlationId"]) == ('an"a', "c\x00")
    assert row.record() == {"type": "todo/write", "seq": 0, "time": row.time, "data": {"a": 1}}


@pytest.mark.parametrize("origin", [Origin("\ud800"), Origin("a", "\udfff")])
def test_an_origin_that_is_not_valid_unicode_is_refused(session: Session, origin: Origin) -> None:
    with pytest.raises(LosslessError, match="not valid Unicode"):
        session.append("todo/write", {}, origin=origin)


def test_an_event_over_the_cap_is_refused_and_says_so() -> None:
    session = Session.create(HEADER, composition(), counting_means(max_event_bytes=1000))
    session.append("todo/write", "x" * 900)
    before = view(session)

    with pytest.raises(TooLargeError, match="1000 is the most") as caught:
        session.append("todo/write", "x" * 1000)

    assert caught.value.size_bytes > caught.value.max_bytes == 1000
    assert caught.value.seq == 1
    assert view(session) == before


def test_the_default_cap_is_16_mib() -> None:
    session = new_session()
    session.append("todo/write", "x" * (16 * 2**20 - 200))

    with pytest.raises(TooLargeError):
        session.append("todo/write", "x" * (16 * 2**20))

    assert session.next_seq == 1


def test_a_required_event_of_an_unknown_type_is_refused_v4(session: Session) -> None:
    with pytest.raises(UnknownEventError) as caught:
        session.append("x/new", {})

    assert (caught.value.type, caught.value.seq) == ("x/new", 0)


@pytest.mark.parametrize("type_", ["x/new", "a?", "b@2", "%3F", "é\x00", "\U0001f600", "", "?"])
def test_any_ignorable_type_is_kept(session: Session, type_: str) -> None:
    row = session.append(type_, [None], {"ignorable": True})

    assert (row.type, row.ignorable, row.data) == (type_, True, [None])
    assert list(session.nodes) == []


def test_a_log_only_type_needs_no_order_of_turns_r147(session: Session) -> None:
    session.append("turn/end", {"turn": 5, "reason": {"kind": "completed"}})
    session.append("step/end", {})

    assert session.next_seq == 2
    assert not session.is_turn_open


@pytest.mark.parametrize(
    ("type_", "data", "error"),
    [
        ("user/message", 5, MessageShapeError),
        ("system/message", {}, MessageShapeError),
        ("request/header", {"header": {"config": {}}, "reason": "initial"}, PayloadError),
        ("tool/result", None, PayloadError),
    ],
)
def test_an_append_makes_the_checks_of_a_seed_v1(
    session: Session, type_: str, data: Json, error: type[SessionError]
) -> None:
    """Against R24, R146."""
    options: Json = None if type_ == "request/header" else APPEND

    with pytest.raises(error) as caught:
        session.append(type_, data, options)

    assert caught.value.seq == 0


@pytest.mark.parametrize(
    ("data", "options", "code"),
    [
        (float("nan"), {"surfaceOp": float("nan"), "x": 1}, "append-intent"),
        (float("nan"), {"surfaceOp": float("nan")}, "json"),
        (5, {"surfaceOp": "no"}, "message-shape"),
        (user(), {"surfaceOp": "no"}, "surface-op"),
    ],
)
def test_refusals_come_in_the_order_of_r137(
    session: Session, data: Json, options: dict[str, Json], code: str
) -> None:
    with pytest.raises(SessionError) as caught:
        session.append("user/message", data, options)

    assert caught.value.code == code


def test_deep_nesting_is_refused_without_harm(session: Session) -> None:
    with pytest.raises(LosslessError, match="nested deeper"):
        session.append("todo/write", nested(100_000))

    session.append("todo/write", nested(200))
    assert session.next_seq == 1


def test_the_newest_events_of_some_types_stay_at_hand(session: Session) -> None:
    append_all(session, log(("session/title", "a"), ("todo/write", {}), ("session/title", "b")))

    title = session.latest("session/title")
    assert title is not None
    assert (title.seq, title.data) == (2, "b")
    assert session.latest("request/header") is None
    with pytest.raises(ValueError, match="'todo/write' is not kept in memory, read the log"):
        session.latest("todo/write")


def test_message_events_are_found_by_seq_hidden_or_not(session: Session) -> None:
    append_all(session, log(("system/message", system("s")), ("todo/write", {})))
    session.append(
        "system/message",
        system("t"),
        {
            "surfaceOp": {"op": "replace", "startSeq": 0, "endSeq": 0},
            "sourceEventSeqs": [0],
        },
    )

    found = [session.event(seq) for seq in range(-1, 5)]
    assert [event and event.seq for event in found] == [None, 0, None, 2, None, None]


def test_a_gap_in_what_others_stored_is_refused(session: Session) -> None:
    rows = append_all(new_session(), log(*(("todo/write", n) for n in range(3))))
    before = view(session)

    with pytest.raises(EventSequenceError, match="version 4 where 2 is next"):
        session.catch_up(rows[2:])
    with pytest.raises(EventSequenceError):
        session.catch_up([rows[0], rows[2]])

    assert view(session) == before
