"""What a session hands out: derivation, identity and snapshots (groups E and H)."""

import pytest

from everfold.session import doors
from everfold.session.composition import Composition
from everfold.session.conversation import ConversationCache
from everfold.session.derive import derive_event_message, stored_message
from everfold.session.detached import fold_surface, messages_of, original_messages
from everfold.session.events import Event
from everfold.session.frozen import Json
from everfold.session.session import Session
from tests.domain.kit import (
    APPEND,
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
    wire,
)

BASE = log(
    ("system/message", system("s", text("prompt"))),
    ("user/message", user("u", text("see"), image(1))),
    ("assistant/message", assistant("a", text("yes"))),
    ("tool/result", tool_result("c", image(2), text("out"))),
)


@pytest.fixture
def session() -> Session:
    session = new_session()
    append_all(session, BASE)
    return session


def test_messages_are_those_of_the_events_in_surface_order_r81_r88(session: Session) -> None:
    messages = session.messages()

    assert messages == [
        BASE[0]["data"]["message"],
        BASE[1]["data"],
        BASE[2]["data"]["message"],
        BASE[3]["data"]["message"],
    ]
    assert list(messages.seqs) == [0, 1, 2, 3]


@pytest.mark.parametrize("type_", ["system/message", "assistant/message"])
def test_an_empty_message_of_these_types_is_none_but_stays_a_node_r82(type_: str) -> None:
    data = system() if type_ == "system/message" else assistant()
    session = new_session()

    append_all(session, log((type_, data), ("user/message", user("u", text("x")))))

    assert list(session.nodes) == [0, 1]
    assert list(session.messages().seqs) == [1]


@pytest.mark.parametrize("type_", ["user/message", "tool/result"])
def test_an_empty_message_of_these_types_is_given_r83(type_: str) -> None:
    session = new_session()

    append_all(session, log((type_, user() if type_ == "user/message" else tool_result())))

    assert list(session.messages().seqs) == [0]


def test_a_message_that_only_mentions_emptiness_is_given() -> None:
    session = new_session()
    data = assistant("a", {"type": "x", "content": []}, text('"content":[]'))

    append_all(session, log(("assistant/message", data)))

    assert session.messages()[0] == data["message"]


def test_other_events_give_no_message_r85() -> None:
    assert stored_message(Event("turn/start", 0, {"message": user()})) is None
    assert stored_message(Event("image/offload", 0, user())) is None


def test_a_projected_message_is_the_result_whatever_is_stored_r80() -> None:
    event = Event("user/message", 4, user())

    assert derive_event_message(event, {4: user("p")}) == user("p")
    assert derive_event_message(event, {5: user("p")}) == user()


def test_reading_twice_gives_the_same_objects_r89(session: Session) -> None:
    first = list(session.messages())
    second = list(session.messages())

    assert all(a is b for a, b in zip(first, second, strict=True))


def test_other_messages_keep_their_identity_across_an_omission_r128(session: Session) -> None:
    before = list(session.messages())

    session.append("image/offload", omit((1, [0])))

    after = list(session.messages())
    assert [a is b for a, b in zip(before, after, strict=True)] == [True, False, True, True]
    assert after[1]["content"][1] == image(1, offloaded=True)


def test_untouched_blocks_keep_their_identity_r219(session: Session) -> None:
    before = list(session.messages())

    session.append("image/offload", omit((1, [0]), (3, [0])))

    after = list(session.messages())
    assert after[1]["content"][0] is before[1]["content"][0]
    assert after[3]["content"][0]["content"][1] is before[3]["content"][0]["content"][1]
    assert after[1]["source"] is before[1]["source"]


def test_messages_keep_their_identity_across_a_replacement_r89(session: Session) -> None:
    before = list(session.messages())

    session.append("user/message", user("n", text("new")), replace(1, 1))

    after = list(session.messages())
    assert [a is b for a, b in zip(before, after, strict=True)] == [True, False, True, True]


def test_the_event_holds_the_message_that_was_handed_out(session: Session) -> None:
    message = session.messages()[2]

    event = session.event(2)

    assert event is not None
    assert event.data["message"] is message


def test_a_list_that_was_handed_out_does_not_grow_r127(session: Session) -> None:
    messages, nodes = session.messages(), session.nodes

    session.append("user/message", user("later"), APPEND)
    session.append("user/message", user("over"), replace(1, 3, 1, 2, 3))

    assert (len(messages), len(nodes)) == (4, 4)
    assert [message["id"] for message in messages] == ["s", "u", "a", "r-c"]
    assert list(nodes) == [0, 1, 2, 3]


def test_messages_are_frozen_r89(session: Session) -> None:
    with pytest.raises(TypeError):
        session.messages()[1]["content"].append(text("forged"))


def test_a_conversation_reads_like_a_list(session: Session) -> None:
    messages = session.messages()

    assert messages[-1] == messages[3]
    assert list(messages[1:3]) == [messages[1], messages[2]]
    assert dict(messages.items()).keys() == {0, 1, 2, 3}
    assert messages != list(messages)[:3]
    with pytest.raises(IndexError):
        messages[4]


def test_an_omission_on_top_of_an_omission_adds_up_r221() -> None:
    session = new_session()
    session.append("user/message", user("u", image(1), image(1), image(2)), APPEND)

    session.append("image/offload", omit((0, [2])))
    session.append("image/offload", omit((0, [0])))

    marks = [block.get("offloaded") for block in session.messages()[0]["content"]]
    assert marks == [True, None, True]


def test_stored_events_are_not_changed_by_an_omission_r220(session: Session) -> None:
    session.append("image/offload", omit((1, [0])))

    event = session.event(1)
    assert event is not None
    assert event.data == BASE[1]["data"]
    originals = dict(original_messages(session.state.surface))
    assert originals[1] == BASE[1]["data"]


def test_a_detached_reader_sees_the_stored_message_without_projections_r86() -> None:
    events = [Event.of(each) for each in [*BASE, record("image/offload", 4, omit((1, [0])))]]

    surface = fold_surface(events, composition()).surface

    assert dict(messages_of(surface))[1]["content"][1] == image(1, offloaded=True)
    assert derive_event_message(events[1], {}) == BASE[1]["data"]


def test_reading_between_appends_changes_nothing_r78() -> None:
    read, unread = new_session(), new_session()
    records = [
        *BASE,
        record("user/message", 4, user("n", image(3)), **replace(1, 2, 1, 2)),
        record("image/offload", 5, omit((4, [0]))),
        record("assistant/message", 6, assistant("b"), **APPEND),
    ]

    for each in records:
        append_all(read, [each])
        list(read.messages())
    append_all(unread, records)

    assert read.messages() == unread.messages()
    assert list(read.messages().seqs) == [0, 4, 3]


def test_a_log_of_thousands_of_messages_is_extended_not_rebuilt_r125() -> None:
    session = new_session()
    append_all(session, log(*(("user/message", user(f"u{n}")) for n in range(300))))
    first = session.messages()

    session.append("user/message", user("last"), APPEND)

    second = session.messages()
    assert list(second)[:300] == list(first)
    assert second.seqs[300] == 300


def test_an_adopted_session_gives_the_same_messages_r163(session: Session) -> None:
    session.append("image/offload", omit((3, [0])))
    shown: Json = list(session.messages())

    adopted = doors.restore(HEADER, wire(session.collect_events()), composition(), counting_means())

    assert adopted.session.messages() == shown
    assert isinstance(adopted.session.composition, Composition)


def test_what_one_copy_staged_is_not_shown_by_another() -> None:
    cache = ConversationCache()
    first, second = (
        Session(HEADER, composition(), counting_means(), cache=cache) for _copy in range(2)
    )
    first.append("user/message", user("staged"), APPEND)
    first.messages()

    second.append("turn/start", {"turn": 1})
    second.append("user/message", user("stored"), APPEND)

    assert [message["id"] for message in second.messages()] == ["stored"]


def test_a_copy_that_went_another_way_shows_its_own_messages() -> None:
    cache = ConversationCache()
    base = new_session()
    append_all(base, BASE)
    copies = [
        Session(base.header, base.composition, base.means, state=base.state, cache=cache)
        for _copy in range(2)
    ]

    copies[0].append("assistant/message", assistant("empty"), APPEND)
    copies[1].append("assistant/message", assistant("full", text("yes")), APPEND)

    assert [len(copy.messages()) for copy in copies] == [4, 5]


@pytest.mark.parametrize("data", ["text", [], False])
def test_a_detached_reader_shows_a_user_message_as_it_is_r24_r81(data: Json) -> None:
    """No door lets such a message in; logs of others may hold one."""
    events = [Event("user/message", 0, data, surface_op="append")]

    assert fold_surface(events, Composition()).messages() == [(0, data)]
