"""Deciding a batch together gives what deciding its events in turn gives, or leaves it alone."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.session.bulk import decide_together
from everfold.session.deciding import APPEND_OPTIONS, AppendEvent, Decider, Stamp
from everfold.session.errors import SessionError
from everfold.session.events import NO_ORIGIN, Origin, Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session
from everfold.session.state import SessionState, StateFold
from tests.domain.kit import (
    append_all,
    assistant,
    counting_means,
    image,
    log,
    nested,
    new_session,
    omit,
    system,
    text,
    tool_result,
    user,
)
from tests.domain.logs import json_values

MESSAGES = {
    "user/message": user("u", text("hello. 2.0 e+1")),
    "system/message": system("s", text("be brief")),
    "assistant/message": assistant("a", text("no 3e9+1 here")),
    "tool/result": tool_result("c", text("done")),
}
LOG_ONLY = {
    "turn/start": {"turn": 1},
    "todo/write": {"n": 1.5},
    "session/title": {"title": "t"},
    "assistant/attempt": {"turn": 1, "step": 1, "stream": []},
}
ODD_OPTIONS: list[dict[str, Json]] = [
    {"surfaceOp": "append"},
    {"surfaceOp": "no"},
    {"ignorable": True},
    {},
]
OTHERS = {"image/offload": omit((0, [0])), "session/end-seed": {}, "who/knows": {}, "naïve": 1}


@st.composite
def wishes(draw: st.DrawFn) -> AppendEvent:
    """Wishes of every kind; many are plain, some are refused."""
    data = {**MESSAGES, **LOG_ONLY, **OTHERS}
    type_ = draw(st.sampled_from(sorted(data)))
    usual = APPEND_OPTIONS if type_ in MESSAGES else None
    odd = st.sampled_from(ODD_OPTIONS)
    is_odd = draw(st.integers(0, 9))
    return AppendEvent(
        type_,
        draw(json_values) if is_odd == 0 else data[type_],
        draw(odd) if is_odd == 1 else usual,
        draw(st.sampled_from(["own", "", "x" * 201, "\ud800"])) if is_odd == 2 else None,
    )


def started() -> Session:
    """A session with an image on its surface."""
    session = new_session()
    append_all(session, log(("user/message", user("first", image()))))
    return session


def together(
    session: Session, batch: list[AppendEvent], origin: Origin = NO_ORIGIN
) -> tuple[tuple[Recorded, ...] | None, SessionState]:
    """Decide a batch together."""
    fold, means = StateFold(session.state, session.composition), counting_means()
    events = decide_together(session.id, batch, fold, means, Stamp(means, origin))
    return events, fold.state()


def in_turn(
    session: Session, batch: list[AppendEvent], origin: Origin = NO_ORIGIN
) -> tuple[tuple[Recorded, ...], SessionState]:
    """Decide the events of a batch one after another."""
    fold, means = StateFold(session.state, session.composition), counting_means()
    decider = Decider(session.id, fold, means, Stamp(means, origin), is_seeded=False)
    return tuple(decider.decide(command) for command in batch), fold.state()


def facts(state: SessionState) -> dict[str, Any]:
    """What a state holds, as values that compare."""
    surface = state.surface
    return {
        "nodes": [*surface.nodes],
        "events": [surface.events.find(seq) for seq in range(state.next_seq)],
        "latest": dict(state.latest),
        "last": state.last,
        "next_seq": state.next_seq,
        "generations": (surface.replace_generation, surface.content_generation),
    }


@given(st.lists(wishes(), max_size=8))
def test_a_batch_is_decided_as_its_events_in_turn_or_left_alone(batch: list[AppendEvent]) -> None:
    session = started()
    before = facts(session.state)

    events, state = together(session, batch)

    try:
        one_by_one, reached = in_turn(session, batch)
    except SessionError:
        assert events is None
        assert facts(state) == before
        return
    if events is None:
        assert facts(state) == before
    else:
        assert events == one_by_one
        assert facts(state) == facts(reached)


@pytest.mark.parametrize("origin", [NO_ORIGIN, Origin('who",""time":', "why")])
@pytest.mark.parametrize("own", [None, "own"])
def test_plain_events_are_decided_together(origin: Origin, own: str | None) -> None:
    batch = [AppendEvent(type_, data, APPEND_OPTIONS) for type_, data in MESSAGES.items()]
    batch += [AppendEvent(type_, data) for type_, data in LOG_ONLY.items()]
    batch.insert(2, AppendEvent("todo/write", "own id", event_id=own))

    events, state = together(started(), batch, origin)

    assert events == in_turn(started(), batch, origin)[0]
    assert state.next_seq == 10


@pytest.mark.parametrize(
    "data",
    [
        (1, 2),
        {"a": [(1,)]},
        float("nan"),
        [-0.0],
        2**53,
        [float(2**53)],
        [1e300],
        {"a": uuid.UUID(int=1)},
        {"a": "\ud800"},
        {1: 2},
        nested(201),
        [nested(200)],
    ],
)
def test_what_json_would_lose_is_never_decided_together(data: Any) -> None:
    batch = [AppendEvent("todo/write", {}), AppendEvent("todo/write", data)]

    assert together(started(), batch)[0] is None


@pytest.mark.parametrize("data", [nested(200), {"a": [True, None, 1, 0.5, "x"]}, 7, "", []])
def test_whatever_json_holds_is_decided_together(data: Any) -> None:
    (event,) = together(started(), [AppendEvent("todo/write", data)])[0] or ()

    assert event.data == data


def test_a_batch_of_nothing_is_nothing() -> None:
    assert started().append_batch([]) == ()
