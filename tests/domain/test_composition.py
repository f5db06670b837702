"""Registration, disposal and pending decisions: group G and V3."""

import pytest

from everfold.plugins.plugin import Plugin, PluginError, scope
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.session import doors
from everfold.session.composition import Composition
from everfold.session.deciding import AppendEvent
from everfold.session.errors import (
    ProjectionChangedError,
    ProjectionDuplicateError,
    ProjectionMissingError,
    UnknownEventError,
)
from everfold.session.events import Event
from everfold.session.projection import MessageProjection
from everfold.session.session import Session
from everfold.session.state import SessionState, StateFold
from everfold.session.vocabulary import CORE, MESSAGE_TYPES, EventType, Role
from tests.domain.kit import (
    APPEND,
    HEADER,
    append_all,
    counting_means,
    image,
    log,
    new_session,
    omit,
    text,
    user,
    view,
    wire,
)
from tests.domain.retitle import TYPE, answering, retitling

NOTE = {"seq": 0, "text": "new"}


class World:
    """A session whose history used a projection, and the means to take it away."""

    def __init__(self) -> None:
        self.definition = retitling()
        self.composition = Composition()
        self.dispose = self.composition.register(self.definition)
        self.session = Session.create(HEADER, self.composition, counting_means())
        self.session.append("user/message", user("u", text("old")), APPEND)

    def use(self) -> None:
        self.session.append(TYPE, NOTE)


@pytest.fixture
def world() -> World:
    return World()


def assert_refused(session: Session) -> None:
    """Every read and every append of the session is refused."""
    for read in (
        lambda: session.nodes,
        lambda: session.messages(),
        lambda: session.replace_generation,
        lambda: session.content_generation,
        lambda: session.append("todo/write", {}),
        lambda: session.append("user/message", user(), APPEND),
        lambda: session.decide([]),
    ):
        with pytest.raises(ProjectionChangedError):
            read()


def test_a_second_definition_of_a_type_is_refused_r110(world: World) -> None:
    with pytest.raises(ProjectionDuplicateError, match=r"'titles'.*'liar'"):
        world.composition.register(answering(lambda _: {}))

    assert world.composition.definitions[TYPE] is world.definition


def test_the_same_definition_twice_is_refused_r110(world: World) -> None:
    with pytest.raises(ProjectionDuplicateError):
        world.composition.register(world.definition)


def test_after_removal_the_type_is_free_again_r110(world: World) -> None:
    world.dispose()

    world.composition.register(answering(lambda _: {}))

    assert world.composition.definitions[TYPE].plugin == "liar"


def test_a_disposer_removes_its_own_definition_alone_r111(world: World) -> None:
    world.dispose()
    other = answering(lambda _: {})
    world.composition.register(other)

    world.dispose()

    assert world.composition.definitions[TYPE] is other


def test_a_spent_disposer_leaves_a_later_registration_of_the_same_object_r111(
    world: World,
) -> None:
    world.dispose()
    world.composition.register(world.definition)

    world.dispose()

    assert world.composition.definitions[TYPE] is world.definition
    assert TYPE in world.composition.vocabulary


def test_a_spent_withdrawal_leaves_an_equal_declaration_of_another() -> None:
    composition = Composition()
    mine = composition.declare([EventType("x/new")])
    composition.declare([EventType("x/new")])

    mine()
    mine()

    assert "x/new" in composition.vocabulary


def test_sessions_see_the_live_list_r112(world: World) -> None:
    world.use()

    world.dispose()

    assert_refused(world.session)


def test_the_very_same_object_heals_the_session_r116(world: World) -> None:
    world.use()
    before = view(world.session)
    world.dispose()

    world.composition.register(world.definition)

    assert view(world.session) == before
    world.session.append("todo/write", {})


def test_an_equal_but_different_object_does_not_heal_it_r116(world: World) -> None:
    world.use()
    world.dispose()

    world.composition.register(retitling())

    assert_refused(world.session)


def test_a_restored_session_takes_the_new_definition_r117(world: World) -> None:
    world.use()
    rows = world.session.collect_events()
    world.dispose()
    world.composition.register(retitling())

    adopted = doors.restore(HEADER, wire(rows), world.composition, counting_means())

    assert adopted.session.messages()[0]["content"] == [text("new")]


def test_a_decision_that_was_stored_counts_as_used_r118(world: World) -> None:
    decision = world.session.decide([AppendEvent(TYPE, NOTE)])
    world.session.accept(decision)

    world.dispose()

    assert_refused(world.session)


def test_a_decision_that_was_dropped_leaves_no_dependency_r119(world: World) -> None:
    world.session.decide([AppendEvent(TYPE, NOTE)])

    world.dispose()

    assert view(world.session)["messages"] == [(0, user("u", text("old")))]


def test_a_refused_event_leaves_no_dependency_r119(world: World) -> None:
    with pytest.raises(Exception, match="asks to be rejected"):
        world.session.append(TYPE, {"seq": 0, "text": "reject"})

    world.dispose()

    assert list(world.session.nodes) == [0]


def test_what_was_handed_out_before_the_removal_stays_valid_r120(world: World) -> None:
    world.use()
    messages, nodes = world.session.messages(), world.session.nodes

    world.dispose()

    assert messages[0]["content"] == [text("new")]
    assert list(nodes) == [0]


def test_the_log_can_still_be_read_r121(world: World) -> None:
    world.use()
    world.dispose()

    rows = world.session.collect_events()

    assert [row.type for row in rows] == ["session/created", "user/message", TYPE]
    assert (world.session.next_seq, world.session.version) == (2, 3)
    event = world.session.event(0)
    assert event is not None
    assert event.data == user("u", text("old"))


def test_a_late_registration_asks_for_a_restore_v3(world: World) -> None:
    composition = Composition()
    session = Session.create(HEADER, composition, counting_means())
    append_all(session, log(("user/message", user("u", text("old")))))
    session.append(TYPE, NOTE, {"ignorable": True})

    composition.register(world.definition)

    assert_refused(session)
    adopted = doors.restore(HEADER, wire(session.collect_events()), composition, counting_means())
    assert adopted.session.messages()[0]["content"] == [text("new")]


def test_a_late_registration_of_an_unused_type_is_free(world: World) -> None:
    composition = Composition()
    session = Session.create(HEADER, composition, counting_means())
    session.append("user/message", user("u", text("old")), APPEND)

    composition.register(world.definition)
    session.append(TYPE, NOTE)

    assert session.messages()[0]["content"] == [text("new")]


def test_a_history_that_never_used_it_is_not_affected_r123() -> None:
    composition = Composition()
    dispose = composition.register(IMAGE_OFFLOAD)
    session = Session.create(HEADER, composition, counting_means())
    session.append("user/message", user("u", image()), APPEND)

    dispose()
    session.append("todo/write", {})

    assert list(session.nodes) == [0]
    with pytest.raises(ProjectionMissingError) as caught:
        session.append("image/offload", omit((0, [0])))
    assert (caught.value.type, caught.value.seq) == ("image/offload", 2)


def test_what_others_stored_is_not_folded_with_an_exchanged_definition(world: World) -> None:
    world.use()
    twin = Session.create(HEADER, world.composition, counting_means())
    twin.catch_up(world.session.collect_events()[1:])
    world.use()
    later = world.session.collect_events()
    world.dispose()
    world.composition.register(retitling())

    with pytest.raises(ProjectionChangedError):
        twin.catch_up(later)

    assert_refused(twin)


def test_a_type_that_nobody_owns_any_more_is_unknown_v4(world: World) -> None:
    world.dispose()

    with pytest.raises(UnknownEventError):
        world.session.append(TYPE, NOTE)


def test_an_interpreter_of_a_kept_type_hides_no_fact_r105() -> None:
    turns = MessageProjection("turn/start", lambda _event, _history: {}, plugin="turns")
    session = new_session(turns)

    session.append("turn/start", {"turn": 1})

    assert session.content_generation == 1
    assert session.is_turn_open


def test_scope_undoes_what_it_registered_r109() -> None:
    composition = Composition()
    plugin = Plugin("titles", projections=(retitling(),), event_types=(EventType("x/new"),))

    with scope(composition, plugin):
        inside = {TYPE, "x/new"} <= {declared.name for declared in composition.vocabulary}

    assert inside
    assert TYPE not in composition.definitions
    assert "x/new" not in composition.vocabulary


def test_a_scope_that_cannot_be_entered_leaves_nothing(world: World) -> None:
    plugin = Plugin("titles", projections=(retitling(),), event_types=(EventType("x/new"),))

    with pytest.raises(ProjectionDuplicateError), scope(world.composition, plugin):
        raise AssertionError("entered")

    assert world.composition.definitions == {TYPE: world.definition}
    assert "x/new" not in world.composition.vocabulary


def test_a_plugin_may_not_register_for_another() -> None:
    with (
        pytest.raises(PluginError, match=r"'mine'.*'titles'"),
        scope(Composition(), Plugin("mine", projections=(retitling(),))),
    ):
        raise AssertionError("entered")


def test_the_core_knows_58_types_by_declaration_r100() -> None:
    roles = CORE.roles()

    assert len(CORE) == len(roles) == 58
    assert {name for name, role in roles.items() if role is Role.MESSAGE} == MESSAGE_TYPES
    assert {name for name, role in roles.items() if role is Role.PROJECTION} == CORE.inventory
    assert CORE.inventory == {"image/offload"}


def test_a_declared_projection_type_joins_the_inventory_r100() -> None:
    composition = Composition()

    withdraw = composition.declare([EventType("x/new", Role.PROJECTION)])

    assert composition.needs_interpreter("x/new")
    session = Session.create(HEADER, composition, counting_means())
    with pytest.raises(ProjectionMissingError):
        session.append("x/new", {})
    withdraw()
    assert not composition.needs_interpreter("x/new")


def test_the_inventory_makes_no_unknown_type_readable_r104() -> None:
    session = Session.create(HEADER, Composition(), counting_means())

    with pytest.raises(UnknownEventError):
        session.append("x/new", {})


def test_compositions_that_fold_alike_have_one_identity() -> None:
    mine, other = Composition([retitling()]), Composition([IMAGE_OFFLOAD, retitling()])

    assert mine.identity() == Composition([retitling()]).identity()
    assert other.identity() == Composition([retitling(), IMAGE_OFFLOAD]).identity()
    newer = MessageProjection(TYPE, retitling().project, plugin="titles", version=2)
    assert len({mine.identity(), other.identity(), Composition([newer]).identity()}) == 3


def test_compositions_that_refuse_different_logs_have_different_identities_v4() -> None:
    narrow, wide = Composition([IMAGE_OFFLOAD]), Composition([IMAGE_OFFLOAD])

    wide.declare([EventType("x/new")])

    assert narrow.identity() != wide.identity()


def test_an_interpreter_for_a_message_type_is_refused() -> None:
    with pytest.raises(ProjectionDuplicateError, match="'user/message' makes messages"):
        Composition((MessageProjection("user/message", lambda _event, _history: {}, "greedy"),))


def test_an_interpreter_that_comes_between_plan_and_apply_is_late_v3() -> None:
    composition = Composition()
    composition.declare([EventType(TYPE)])
    fold = StateFold(SessionState.empty(), composition)
    event = Event(TYPE, 0, {})
    plan = fold.surface.plan(event)

    composition.register(retitling())
    fold.apply(event, plan)

    with pytest.raises(ProjectionChangedError, match="registered after events of that type"):
        fold.state().check_projections(composition)


@pytest.mark.parametrize("stranger", ["image-offload", None])
def test_what_is_no_plugin_is_named(stranger: object) -> None:
    with pytest.raises(PluginError, match="not an everfold Plugin"), scope(Composition(), stranger):  # type: ignore[arg-type]  # the point of the test
        raise AssertionError("it was let in")
