"""Explicit decisions about images, and the list of all of them; they hold after restore and fork."""

from collections.abc import Callable
from typing import Any

import pytest

from everfold.agent.cancelling import TurnCancellation
from everfold.llm.budgets import ImageBudget
from everfold.llm.chunks import BlockEnd
from everfold.llm.failure import LlmError, LlmFailure
from everfold.llm.route import Capabilities
from everfold.plugins.waterfalls import SummaryErrorQuestion
from everfold.projections.catalog import detached_composition
from everfold.projections.image_offload.decisions import (
    Occurrence,
    bring_back,
    occurrences,
    omit,
)
from everfold.projections.image_offload.errors import OffloadIndexError, OffloadTargetError
from everfold.projections.image_offload.projection import mark_message
from everfold.projections.image_offload.recovery import recover_summary
from everfold.routes.scripted import Reply, calls, says
from everfold.session.deciding import message, replacement
from everfold.session.detached import fold_surface
from everfold.session.errors import ProjectionError
from tests.agent.kit import Host, png, run, shown

USER = 3
"""The seq of the first user message of a session."""


def session_with(host: Host, *numbers: int) -> str:
    """Return a session whose first message holds these images."""
    agent = host.agent(host.route())
    run(agent.ask(["look", *map(png, numbers)]))
    return agent.session_id


def states(host: Host, session_id: str) -> list[tuple[int, int, str, int | None]]:
    found = occurrences(host.sessions.load(session_id), host.sessions.log(session_id))
    return [(image.seq, image.index, image.state, image.decided_by) for image in found]


def test_every_occurrence_is_listed_with_its_state_and_decision(host: Host) -> None:
    session_id = session_with(host, 1, 1, 2)
    event = omit(host.access(session_id), {USER: [1]})

    found = occurrences(host.sessions.load(session_id), host.sessions.log(session_id))

    assert found == [
        Occurrence(USER, 0, png(1)["attachment"], "retained", None),
        Occurrence(USER, 1, png(1)["attachment"], "omitted", event.seq),
        Occurrence(USER, 2, png(2)["attachment"], "retained", None),
    ]


def test_images_that_a_model_made_are_listed_as_output(host: Host) -> None:
    agent = host.agent(host.route(Reply((BlockEnd(0, png(9)), *says("x").chunks[-1:]))))
    run(agent.ask("draw"))

    assert [state for _, _, state, _ in states(host, agent.session_id)] == ["output"]


def test_a_mark_of_the_stored_message_is_decided_by_that_message(host: Host) -> None:
    session_id = session_with(host, 1)
    stored = host.sessions.load(session_id).event(USER)
    assert stored is not None
    copy = {**mark_message(stored.data, [0]), "id": "copy"}
    host.access(session_id).append(
        [replacement("user/message", copy, start=USER, end=USER, sources=[USER])]
    )
    seq = host.log(session_id)[-1].seq

    assert states(host, session_id) == [(seq, 0, "omitted", seq)]
    with pytest.raises(OffloadIndexError, match="omitted in the stored message itself"):
        bring_back(host.access(session_id), {seq: [0]})


def test_an_image_that_was_brought_back_is_shown_again(host: Host) -> None:
    route = host.route()
    agent = host.agent(route)
    run(agent.ask(["look", png(1), png(2)]))
    access = host.access(agent.session_id)
    omit(access, {USER: [0, 1]})
    event = bring_back(access, {USER: [1]})

    run(agent.ask("again"))

    assert shown(route)[2:4] == ["user: [omitted 1]", "user: [image 2]"]
    assert states(host, agent.session_id)[1] == (USER, 1, "retained", event.seq)
    assert host.data(agent.session_id, "request/header")[-1]["reason"] == "series"


def test_bringing_back_is_an_event_and_no_edit(host: Host) -> None:
    session_id = session_with(host, 1)
    access = host.access(session_id)
    omit(access, {USER: [0]})
    before = [event.state for event in host.log(session_id)]

    bring_back(access, {USER: [0]})

    after = host.log(session_id)
    assert [event.state for event in after[:-1]] == before
    assert after[-1].type == "image/bring-back"
    assert host.sessions.load(session_id).messages()[1] == after[USER].data


def test_images_inside_tool_results_are_counted_and_brought_back_too(host: Host) -> None:
    def shoot() -> dict[str, object]:
        return png(4)

    agent = host.agent(host.route(calls(("c", "shoot", {})), says("ok")), tools=[shoot])
    run(agent.ask("go"))
    seq = next(event.seq for event in host.log(agent.session_id) if event.type == "tool/result")
    access = host.access(agent.session_id)

    omit(access, {seq: [0]})
    omitted = states(host, agent.session_id)[0][2]
    bring_back(access, {seq: [0]})

    assert (omitted, states(host, agent.session_id)[0][2]) == ("omitted", "retained")


@pytest.mark.parametrize(
    ("targets", "error", "reason"),
    [
        ({USER: [0]}, OffloadIndexError, "image 0 of seq 3 is not omitted"),
        ({USER: [3]}, OffloadIndexError, "image 3 of seq 3 is beyond the message's 2"),
        ({USER: [1, 1]}, OffloadIndexError, "not whole numbers in increasing order"),
        ({0: [0]}, OffloadTargetError, "target 0 is not on the surface"),
        ({99: [0]}, OffloadTargetError, "target 99 is not on the surface"),
    ],
)
def test_a_wrong_bring_back_is_refused_whole(
    host: Host, targets: dict[int, list[int]], error: type[Exception], reason: str
) -> None:
    session_id = session_with(host, 1, 2)
    access = host.access(session_id)
    omit(access, {USER: [1]})
    known = len(host.log(session_id))

    with pytest.raises(error, match=reason):
        bring_back(access, targets)

    assert len(host.log(session_id)) == known


@pytest.mark.parametrize("indexes", [None, 5, ["a", 0]])
@pytest.mark.parametrize("decide", [omit, bring_back])
def test_a_decision_about_what_are_no_indexes_is_refused(
    host: Host, decide: Callable[..., object], indexes: Any
) -> None:
    session_id = session_with(host, 1)
    known = len(host.log(session_id))

    with pytest.raises(ProjectionError):
        decide(host.access(session_id), {USER: indexes})

    assert len(host.log(session_id)) == known


def test_omitting_the_same_occurrence_again_is_refused_h5(host: Host) -> None:
    session_id = session_with(host, 1)
    omit(host.access(session_id), {USER: [0]})

    with pytest.raises(OffloadIndexError, match="image 0 is omitted already"):
        omit(host.access(session_id), {USER: [0]})


def test_restore_fork_and_detached_fold_agree_on_what_was_brought_back(host: Host) -> None:
    session_id = session_with(host, 1, 2, 3)
    access = host.access(session_id)
    omit(access, {USER: [0, 1, 2]})
    bring_back(access, {USER: [1]})
    live = list(host.sessions.load(session_id).messages())

    child = host.sessions.fork(session_id)
    with host.other() as theirs:
        restored, forked = (list(theirs.load(name).messages()) for name in (session_id, child))

    detached = fold_surface(host.log(session_id), detached_composition())
    assert restored == forked == live
    assert [message for _, message in detached.messages()] == live


def test_a_snapshot_of_another_composition_is_not_trusted(host: Host) -> None:
    with_both = host.sessions.composition.identity()

    without = type(host.sessions.composition)(
        [host.sessions.composition.definitions["image/offload"]]
    )

    assert without.identity() != with_both


def question(
    host: Host, session_id: str, selection: tuple[int, ...], error: BaseException
) -> SummaryErrorQuestion:
    return SummaryErrorQuestion(host.access(session_id), selection, error, TurnCancellation())


def too_many(count: int | None) -> LlmError:
    failure = LlmFailure("too many", "IMAGE_OFFLOAD_REQUIRED", offload_images=count)
    return LlmError(failure)


def two_messages(host: Host) -> tuple[str, int]:
    session_id = session_with(host, 1)
    second = {
        "id": "second",
        "role": "user",
        "content": [png(2), png(3)],
        "source": {"kind": "user"},
    }
    event = host.access(session_id).append([message("user/message", second)])[0]
    return session_id, event.seq


def test_r273_a_summary_omits_only_within_its_selection(host: Host) -> None:
    session_id, second = two_messages(host)

    recovered = recover_summary(question(host, session_id, (second,), too_many(1)), lambda: False)

    assert recovered is True
    assert host.data(session_id, "image/offload") == [
        {"targets": [{"seq": second, "imageIndexes": [0]}]}
    ]


@pytest.mark.parametrize(
    "error",
    [RuntimeError("IMAGE_OFFLOAD_REQUIRED"), LlmError(LlmFailure("x", "AUTH")), too_many(None)],
)
def test_r272_what_only_looks_like_the_failure_is_passed_on(
    host: Host, error: BaseException
) -> None:
    session_id, second = two_messages(host)

    answer = recover_summary(question(host, session_id, (second,), error), lambda: True)

    assert answer is True
    assert host.data(session_id, "image/offload") == []


def test_r273_after_a_cancellation_nothing_is_decided(host: Host) -> None:
    session_id, second = two_messages(host)
    asked = question(host, session_id, (second,), too_many(1))
    assert isinstance(asked.cancellation, TurnCancellation)
    asked.cancellation.set()

    assert recover_summary(asked, lambda: True) is False
    assert host.data(session_id, "image/offload") == []


def test_a_summary_without_images_is_passed_on(host: Host) -> None:
    session_id = session_with(host)

    assert recover_summary(question(host, session_id, (USER,), too_many(1)), lambda: True) is True


def test_an_image_block_that_refers_to_nothing_stops_no_session(host: Host) -> None:
    """R28: the log takes it; a request counts it as nothing, planning ahead or not."""
    session = host.new_session()
    for number, attachment in enumerate(({"id": "x"}, None, {"bytes": "many"}, {"bytes": True})):
        odd = {"type": "image", "attachment": attachment}
        message = {"id": f"u{number}", "role": "user", "source": {"kind": "user"}, "content": [odd]}
        host.sessions.append(session, "user/message", message, {"surfaceOp": "append"})
    takes = Capabilities(user_images=True, budget=ImageBudget("raw", max_bytes=100))

    result = run(host.agent(host.route(says("fine"), takes=takes), session).ask("hi"))

    assert (result.kind, result.text) == ("completed", "fine")
