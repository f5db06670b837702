"""What a projection may answer, and what an answer does: group F and V2."""

import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

from everfold.session import doors
from everfold.session.composition import Composition
from everfold.session.detached import fold_surface
from everfold.session.errors import (
    ProjectionMissingError,
    ProjectionRejectedError,
    SurfaceOpError,
)
from everfold.session.events import Event, EventLike
from everfold.session.frozen import Json, freeze
from everfold.session.projection import History, MessageProjection, message_at
from everfold.session.session import Session
from everfold.session.surface import Surface, SurfaceFold
from tests.domain.kit import (
    HEADER,
    append_all,
    assistant,
    composition,
    counting_means,
    image,
    log,
    new_session,
    omit,
    record,
    replace,
    system,
    text,
    tool_result,
    user,
    view,
    wire,
)
from tests.domain.retitle import TYPE, answering, retitling

BASE = log(
    ("system/message", system("s", text("prompt"))),
    ("user/message", user("u", text("hi"))),
    ("assistant/message", assistant("a", text("yes"))),
    ("tool/result", tool_result("c", text("out"))),
    ("todo/write", {}),
    ("user/message", user("v", text("later")), replace(1, 1)),
)
NOTE = {"seq": 2, "text": "new"}
Answer = Callable[[History], object]


def shown(history: History, seq: int, **more: Json) -> dict[str, Json]:
    message = message_at(history, seq)
    assert message is not None
    return {**message, **more}


def without(history: History, name: str) -> dict[str, Json]:
    return {key: value for key, value in shown(history, 2).items() if key != name}


def deep() -> list[Json]:
    value: list[Json] = []
    for _ in range(300):
        value = [value]
    return value


async def never(_history: History) -> None:
    """An interpreter that somebody made asynchronous."""


WRONG: dict[str, tuple[Answer, str]] = {
    "none": (lambda _: None, "answered with NoneType, not a mapping"),
    "list": (lambda h: [(2, shown(h, 2))], "answered with list, not a mapping"),
    "generator": (lambda h: ((2, m) for m in [1]), "answered with generator"),
    "text key": (lambda h: {"2": shown(h, 2)}, "answered for '2', which is no seq"),
    "float key": (lambda h: {2.0: shown(h, 2)}, "answered for 2.0, which is no seq"),
    "true key": (lambda h: {True: shown(h, 2)}, "answered for True, which is no seq"),
    "negative key": (lambda h: {-1: shown(h, 2)}, "seq -1, which holds no message"),
    "own key": (lambda h: {6: shown(h, 2)}, "seq 6, which holds no message"),
    "later key": (lambda h: {99: shown(h, 2)}, "seq 99, which holds no message"),
    "log-only key": (lambda h: {4: shown(h, 2)}, "seq 4, which holds no message"),
    "no object": (lambda _: {2: "text"}, "invalid message for seq 2"),
    "null": (lambda _: {2: None}, "invalid message for seq 2"),
    "proxy": (lambda h: {2: types.MappingProxyType(shown(h, 2))}, "invalid message"),
    "without id": (lambda h: {2: without(h, "id")}, "invalid message for seq 2: id"),
    "without role": (lambda h: {2: without(h, "role")}, "invalid message for seq 2: role"),
    "without source": (lambda h: {2: without(h, "source")}, "invalid message for seq 2: source"),
    "without content": (lambda h: {2: without(h, "content")}, "invalid message for seq 2: content"),
    "other id": (lambda h: {2: shown(h, 2, id="b")}, "changed the id of the message at seq 2"),
    "other role": (lambda h: {2: shown(h, 2, role="user")}, "changed the role"),
    "other source": (
        lambda h: {2: shown(h, 2, source={"kind": "model", "provider": "p", "model": "n"})},
        "changed the source",
    ),
    "message of another": (lambda h: {2: shown(h, 3)}, "changed the id"),
    "tuple content": (lambda h: {2: shown(h, 2, content=())}, "invalid message for seq 2: content"),
    "nan": (lambda h: {2: shown(h, 2, content=[float("nan")])}, r"content\[0\] is nan"),
    "-0": (lambda h: {2: shown(h, 2, content=[-0.0])}, r"content\[0\] is -0"),
    "set": (lambda h: {2: shown(h, 2, content=[{1}])}, r"content\[0\] is a set"),
    "surrogate": (lambda h: {2: shown(h, 2, content=["\ud800"])}, "lone surrogate"),
    "deep": (lambda h: {2: shown(h, 2, content=deep())}, "nested deeper than 200"),
    "one of two wrong": (
        lambda h: {3: shown(h, 3, content=[]), 2: shown(h, 2, id="b")},
        "changed the id of the message at seq 2",
    ),
}


def session_over(answer: Answer) -> Session:
    session = new_session(answering(answer))
    append_all(session, BASE)
    return session


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_refused_and_names_the_plugin_v2(name: str) -> None:
    answer, reason = WRONG[name]
    session = session_over(answer)
    before = view(session)

    with pytest.raises(ProjectionRejectedError, match=f"plugin 'liar'.*{reason}") as caught:
        session.append(TYPE, NOTE)

    assert caught.value.seq == 6
    assert view(session) == before
    assert session.state.surface.used == {}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_refuses_a_log_too_v2(name: str) -> None:
    in_force = composition(answering(WRONG[name][0]))
    records = [*BASE, record(TYPE, 6, NOTE)]

    with pytest.raises(ProjectionRejectedError, match="plugin 'liar'"):
        doors.restore(HEADER, records, in_force, counting_means())
    with pytest.raises(ProjectionRejectedError, match="plugin 'liar'"):
        fold_surface([Event.of(each) for each in records], in_force)


def test_an_asynchronous_interpreter_is_refused_v2() -> None:
    pending: list[Any] = []

    def start(history: History) -> object:
        pending.append(never(history))
        return pending[0]

    session = session_over(start)

    with pytest.raises(ProjectionRejectedError, match="answered with coroutine"):
        session.append(TYPE, NOTE)
    pending[0].close()


def test_an_error_of_the_interpreter_is_the_appends_error_r107() -> None:
    error = ZeroDivisionError("inside")

    def fail(_history: History) -> object:
        raise error

    session = session_over(fail)
    before = view(session)

    with pytest.raises(ZeroDivisionError) as caught:
        session.append(TYPE, NOTE)

    assert caught.value is error
    assert any("plugin 'liar'" in note for note in caught.value.__notes__)
    assert view(session) == before


def test_a_hidden_message_may_be_answered_for() -> None:
    session = session_over(lambda h: {1: shown(h, 1, content=[])})

    session.append(TYPE, NOTE)

    assert session.content_generation == 2
    assert session.state.surface.messages.keys() == {1}


def test_an_empty_answer_still_advances_the_content_r77() -> None:
    session = session_over(lambda _: {})

    session.append(TYPE, NOTE)

    assert (session.replace_generation, session.content_generation) == (1, 2)


def test_a_projection_event_is_no_node_r98() -> None:
    session = new_session(retitling())
    append_all(session, BASE)

    session.append(TYPE, NOTE)

    assert list(session.nodes) == [0, 5, 2, 3]


def test_later_updates_replace_earlier_ones_and_leave_others_r97() -> None:
    session = new_session(retitling())
    append_all(session, BASE)

    for seq, title in ((2, "one"), (5, "two"), (2, "three")):
        session.append(TYPE, {"seq": seq, "text": title})

    texts = [message["content"][0].get("text") for message in session.messages()]
    assert texts == ["prompt", "two", "three", None]


def test_a_projected_message_with_empty_content_is_still_given_r84() -> None:
    session = new_session(retitling())
    append_all(session, BASE)

    session.append(TYPE, {"seq": 2, "text": ""})

    assert [seq for seq, _ in session.messages().items()] == [0, 5, 2, 3]


@pytest.mark.parametrize("field", ["surfaceOp", "sourceEventSeqs"])
def test_a_projection_event_carries_no_surface_operation_r99_r102(field: str) -> None:
    """The marker is reported even where no interpreter exists."""
    records = [*BASE, record("image/offload", 6, omit((1, [0])), **{field: "append"})]

    for in_force in (composition(), Composition()):
        with pytest.raises(SurfaceOpError):
            doors.restore(HEADER, records, in_force, counting_means())


def test_ignorable_does_not_excuse_a_missing_interpreter_r103() -> None:
    records = log(("image/offload", omit((0, [0])), {"ignorable": True}))

    with pytest.raises(ProjectionMissingError):
        doors.restore(HEADER, records, Composition(), counting_means())


def test_ignorable_changes_nothing_for_an_interpreted_type_r103() -> None:
    session = new_session()
    session.append("user/message", user("u", image()), {"surfaceOp": "append"})

    session.append("image/offload", omit((0, [0])), {"ignorable": True})

    assert session.messages()[0]["content"] == [image(offloaded=True)]


def test_an_interpreter_sees_the_history_before_the_event_r91() -> None:
    seen: list[Json] = []

    def look(event: EventLike, history: History) -> dict[int, Json]:
        seen.append(
            (
                event.seq,
                list(history.nodes),
                history.base_seq,
                dict(history.messages),
                [history.event(seq) is not None for seq in range(-1, 8)],
                [seq in history.nodes for seq in (0, 1, 4, 5, 6)],
                True in history.nodes,
            )
        )
        return {2: shown(history, 2, content=[])}

    session = new_session(MessageProjection(TYPE, look))
    append_all(session, BASE)
    session.append(TYPE, NOTE)

    (seq, nodes, base, messages, events, places, is_true_a_node) = seen[0]
    assert (seq, nodes, base, messages) == (6, [0, 5, 2, 3], 0, {})
    assert events == [False, True, True, True, True, False, True, False, False]
    assert places == [True, False, False, True, False]
    assert not is_true_a_node


def test_an_interpreter_sees_earlier_events_of_its_batch() -> None:
    session = new_session(retitling())

    append_all(
        session, log(("user/message", user("u", text("x"))), (TYPE, {"seq": 0, "text": "y"}))
    )

    assert session.messages()[0]["content"] == [text("y")]


def test_an_interpreter_cannot_change_what_it_is_shown() -> None:
    def meddle(event: EventLike, history: History) -> dict[int, Json]:
        with pytest.raises(TypeError):
            history.messages[2] = {"id": "forged"}  # type: ignore[index]  # the attempt is the test
        with pytest.raises(TypeError):
            history.nodes[0] = 9  # type: ignore[index]  # the attempt is the test
        with pytest.raises(TypeError):
            shown(history, 2)["content"].append(1)
        with pytest.raises(TypeError):
            event.data["seq"] = 5
        return {}

    session = new_session(MessageProjection(TYPE, meddle))
    append_all(session, BASE)
    before = view(session)["messages"]

    session.append(TYPE, NOTE)

    assert view(session)["messages"] == before


@pytest.mark.parametrize("make", [dict, OrderedDict, freeze])
def test_what_was_answered_cannot_be_changed_later_r94(make: Callable[[Any], Any]) -> None:
    answer: list[Any] = []

    def keep(history: History) -> object:
        content = [make({"type": "text", "text": "new"})]
        answer.append(make(shown(history, 2, content=content)))
        return {2: answer[0]}

    session = session_over(keep)
    session.append(TYPE, NOTE)

    message = session.messages()[2]
    with pytest.raises(TypeError):
        message["content"].append(1)
    with pytest.raises(TypeError):
        message["content"][0]["text"] = "forged"
    with pytest.raises(TypeError):
        message["id"] = "forged"


@pytest.mark.parametrize("seq", ["2", None, 2.5, True, [2], -0.0, -1, 2**53])
def test_an_interpreter_may_ask_for_whatever_a_payload_names(seq: Any) -> None:
    found: list[object] = []

    def ask(event: EventLike, history: History) -> dict[int, Json]:
        found.append((event.data["seq"] in history.nodes, history.event(event.data["seq"])))
        return {}

    fold = SurfaceFold(Surface.empty(), Composition([MessageProjection(TYPE, ask)]))
    fold.plan(Event(TYPE, 0, {"seq": seq}))

    assert found == [(False, None)]


def test_a_detached_fold_omits_images_of_a_message_that_no_door_would_take_r23() -> None:
    bare = {"content": [image()]}
    records = log(("user/message", bare), ("image/offload", omit((0, [0]))))

    result = fold_surface(map(Event.of, records), composition())

    assert result.messages() == [(0, {"content": [image(offloaded=True)]})]


def test_an_interpreter_is_shown_the_same_event_when_it_is_decided_and_replayed_v3() -> None:
    seen: list[object] = []

    def look(event: EventLike, _history: History) -> dict[int, Json]:
        seen.append((event.type, event.seq, event.time, event.data, event.ignorable))
        return {}

    session = new_session(MessageProjection(TYPE, look))
    session.append(TYPE, {"n": 3.0}, {"ignorable": True})

    doors.restore(HEADER, wire(session.collect_events()), session.composition, session.means)
    assert seen[0] == seen[1]
