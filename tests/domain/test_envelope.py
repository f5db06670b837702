"""Event records and append options: groups A and I."""

import types
from collections.abc import Mapping

import pytest

from everfold.session.envelope import check_record
from everfold.session.errors import (
    AppendIntentError,
    EnvelopeError,
    LosslessError,
    SourceRefsError,
    SurfaceOpError,
)
from everfold.session.events import ABSENT
from everfold.session.frozen import Json
from everfold.session.session import Session
from tests.domain.kit import APPEND, new_session, user, view

GOOD = {"type": "todo/write", "seq": 3, "time": 7, "data": {}}


@pytest.fixture
def session() -> Session:
    return new_session()


def test_a_whole_record_is_read() -> None:
    record = {**GOOD, "surfaceOp": 5, "sourceEventSeqs": None, "ignorable": True}

    event = check_record(record)

    assert (event.type, event.seq, event.time, event.data) == ("todo/write", 3, 7, {})
    assert (event.surface_op, event.source_event_seqs, event.ignorable) == (5, None, True)
    assert event.record() == record


@pytest.mark.parametrize("value", [None, [], "text", 5, True])
def test_a_value_that_is_no_object_is_no_record_r3(value: object) -> None:
    with pytest.raises(EnvelopeError, match="not an object"):
        check_record(value)


@pytest.mark.parametrize("key", ["extra", "Type", "surface_op", "eventId", ""])
def test_an_unknown_field_is_refused_by_name_r2(key: str) -> None:
    with pytest.raises(EnvelopeError, match=f"the field '{key}'") as caught:
        check_record({**GOOD, key: 1})

    assert caught.value.seq == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("type", value) for value in (None, 1, True)],
        *[("seq", value) for value in (-1, -0.0, 0.5, "0", True, False, None, 2**53)],
        *[("time", value) for value in (0.5, "0", True, None, -0.0, 2**53, float("nan"))],
        *[("ignorable", value) for value in (False, None, 1, "true")],
    ],
)
def test_a_wrong_field_is_refused_by_name_r4_to_r8(name: str, value: Json) -> None:
    with pytest.raises(EnvelopeError, match=name):
        check_record({**GOOD, name: value})


@pytest.mark.parametrize("name", ["type", "seq", "time", "data"])
def test_a_missing_field_is_refused_by_name(name: str) -> None:
    with pytest.raises(EnvelopeError, match=name):
        check_record({key: value for key, value in GOOD.items() if key != name})


def test_null_data_is_present_r7() -> None:
    assert check_record({**GOOD, "data": None}).data is None


def test_empty_text_is_a_type_r4() -> None:
    assert check_record({**GOOD, "type": ""}).type == ""


def test_negative_time_is_accepted_r6() -> None:
    assert check_record({**GOOD, "time": -5}).time == -5


def test_numbers_with_zero_fraction_become_whole() -> None:
    event = check_record({**GOOD, "seq": 3.0, "time": 1e3})

    assert (type(event.seq), type(event.time)) == (int, int)


def test_null_surface_fields_are_present_r10() -> None:
    event = check_record({**GOOD, "surfaceOp": None, "sourceEventSeqs": None})

    assert event.surface_op is None
    assert event.source_event_seqs is None
    assert check_record(GOOD).surface_op is ABSENT


@pytest.mark.parametrize("options", [[], "", 0, 5, "append", [("surfaceOp", "append")], False])
def test_options_that_are_no_mapping_are_refused_r132(session: Session, options: Json) -> None:
    with pytest.raises(AppendIntentError, match="not a mapping"):
        session.append("user/message", user(), options)


def test_any_mapping_may_hold_the_options(session: Session) -> None:
    options: Mapping[str, Json] = types.MappingProxyType(dict(APPEND))

    assert session.append("user/message", user(), options).surface_op == "append"


@pytest.mark.parametrize("key", ["ignorable", "seq", "time", "type", 5])
def test_a_message_takes_surface_options_alone_r133(session: Session, key: str) -> None:
    with pytest.raises(AppendIntentError, match="takes the options sourceEventSeqs, surfaceOp"):
        session.append("user/message", user(), {**APPEND, key: True})


@pytest.mark.parametrize("key", ["seq", "time", 5])
def test_a_log_only_event_takes_ignorable_alone_r134(session: Session, key: str) -> None:
    with pytest.raises(AppendIntentError, match="takes the options ignorable"):
        session.append("todo/write", {}, {"ignorable": True, key: True})


@pytest.mark.parametrize("value", [False, None, 1, "true"])
def test_ignorable_is_true_or_left_out_r134(session: Session, value: Json) -> None:
    with pytest.raises(AppendIntentError, match="ignorable is"):
        session.append("todo/write", {}, {"ignorable": value})


@pytest.mark.parametrize(
    "options",
    [{"surfaceOp": "append"}, {"surfaceOp": None}, {"sourceEventSeqs": None, "ignorable": True}],
)
def test_surface_options_of_a_log_only_event_are_a_surface_fault_r135(
    session: Session, options: Mapping[str, Json]
) -> None:
    with pytest.raises(SurfaceOpError, match="may not carry"):
        session.append("turn/start", {"turn": 1}, options)


@pytest.mark.parametrize("options", [None, {}])
def test_a_message_without_options_lacks_its_place_r41(session: Session, options: Json) -> None:
    with pytest.raises(SurfaceOpError, match="needs a surfaceOp"):
        session.append("user/message", user(), options)


@pytest.mark.parametrize("type_", [None, 5, b"todo/write", ["todo/write"]])
def test_a_type_that_is_no_text_is_refused(session: Session, type_: str) -> None:
    with pytest.raises(EnvelopeError, match="not text"):
        session.append(type_, {})


def test_a_type_that_is_not_valid_unicode_is_refused(session: Session) -> None:
    before = view(session)

    with pytest.raises(LosslessError, match=r"type is not valid Unicode: .*U\+D800"):
        session.append("x/\ud800", {}, {"ignorable": True})

    assert view(session) == before


@pytest.mark.parametrize("sources", [5, None, True, 1.5])
def test_sources_that_are_no_list_are_refused_r52(session: Session, sources: Json) -> None:
    with pytest.raises(SourceRefsError, match="not a list"):
        session.append("user/message", user(), {**APPEND, "sourceEventSeqs": sources})


@pytest.mark.parametrize("name", ["surfaceOp", "sourceEventSeqs"])
@pytest.mark.parametrize("value", [float("nan"), [-0.0], "\ud800", (0,), {"op": object()}])
def test_surface_options_are_copied_as_json_r137(session: Session, name: str, value: Json) -> None:
    with pytest.raises(LosslessError, match=name):
        session.append("user/message", user(), {**APPEND, name: value})
