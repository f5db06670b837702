"""Recovery inside the selection: R235, R271 to R278, R287, R355, and A2, A4, H4 of the field reports."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.images import images, is_omitted
from everfold.llm.route import Capabilities
from everfold.plugins.waterfalls import SummaryErrorQuestion, Waterfalls
from everfold.projections.compaction.engine import Compacted, Outcome
from everfold.projections.compaction.errors import (
    CompactionCancelledError,
    CompactionChangedError,
    CompactionError,
    CompactionSummaryError,
)
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.image_offload.recovery import omit_oldest, recover_summary
from everfold.routes.scripted import fails, says
from everfold.session.deciding import message
from everfold.session.ports import SessionStore
from tests.compaction.kit import (
    StrictRoute,
    compact,
    compactor,
    metered,
    prompted,
    run,
    turn,
)
from tests.domain.kit import image, log, text, tool_result, user, wishes_of
from tests.projections.kit import again, hosted, shown, types_after

RouteMaker = Callable[..., StrictRoute]
TALK = log(
    *prompted(),
    *turn(1, images=[image(1), image(2)]),
    *turn(2, images=[image(3)]),
    *turn(3, images=[image(4), image(5)]),
)
END = len(TALK) - 1
NEEDS_ONE = fails(FailureCode.IMAGE_OFFLOAD_REQUIRED, "too many", offload_images=1)


def with_images() -> Waterfalls:
    """Return chains that the image-offload plugin joined."""
    chains = Waterfalls()
    chains.summary_error.register("image-offload", recover_summary)
    return chains


def done(outcome: Outcome) -> Compacted:
    """Return an outcome that is a summary."""
    assert isinstance(outcome, Compacted)
    return outcome


def omitted(access: Any) -> list[tuple[int, int]]:
    """Return seq and index of each image that is omitted now."""
    return [
        (seq, index)
        for seq, body in shown(access)
        for index, block in enumerate(images(body["content"]))
        if is_omitted(block)
    ]


def test_r271_recovery_is_asked_with_the_selected_seqs_and_the_error(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, asked = hosted(store, TALK), []
    chains = Waterfalls()

    def note(question: SummaryErrorQuestion, ask_next: Callable[[], bool]) -> bool:
        asked.append(question)
        return ask_next()

    chains.summary_error.register("noting", note)

    with pytest.raises(CompactionSummaryError):
        compact(access, a_route(fails(FailureCode.SERVER, "it burns")), chains)

    (question,) = asked
    assert question.selection == (3, 4, 7, 8)
    assert question.failure == LlmFailure("it burns", FailureCode.SERVER)


def test_r272_a_look_alike_of_a_real_failure_is_passed_on(store: SessionStore) -> None:
    @dataclass
    class LookAlikeError(Exception):
        failure: LlmFailure

    needs_one = LlmFailure("too many", FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=1)
    access = hosted(store, TALK)
    question = SummaryErrorQuestion(
        access, (3,), LookAlikeError(needs_one), CompactionWish().cancellation
    )

    assert recover_summary(question, lambda: False) is False
    assert types_after(access, END) == []


def test_r273_r235_only_images_within_the_selection_are_omitted(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    tail_before = shown(access)[-2:]
    route = a_route(*[NEEDS_ONE] * 3)

    done(compact(access, route, with_images()))

    told = [event for event in access.sessions.log("s") if event.type == "image/offload"]
    assert [event.data["targets"] for event in told] == [
        [{"seq": 3, "imageIndexes": [0]}],
        [{"seq": 3, "imageIndexes": [1]}],
        [{"seq": 7, "imageIndexes": [0]}],
    ]
    assert shown(access)[-2:] == tail_before


def test_r273_when_nothing_in_the_selection_is_left_the_failure_stands(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    with pytest.raises(CompactionSummaryError, match="too many"):
        compact(access, a_route(*[NEEDS_ONE] * 4), with_images())

    assert omitted(access) == [(3, 0), (3, 1), (7, 0)]


def test_r274_a_cancellation_is_seen_before_any_recovery(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    route = a_route()

    class AfterSending:
        @property
        def is_set(self) -> bool:
            return bool(route.sent)

    route.will(NEEDS_ONE)

    with pytest.raises(CompactionCancelledError):
        compact(access, route, with_images(), cancellation=AfterSending())

    assert types_after(access, END) == ["compaction/start", "compaction/request", "compaction/end"]


def test_r274_r276_a_selection_that_changed_is_not_recovered(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    other = again(access)

    def spoil(request: Any) -> Any:
        omit_oldest(other, 1)
        return NEEDS_ONE

    with pytest.raises(CompactionChangedError):
        compact(access, a_route(spoil), with_images())

    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "image/offload",
        "compaction/end",
    ]


def test_r276_decision_and_check_are_adjacent(store: SessionStore, a_route: RouteMaker) -> None:
    """Nothing can come between: what the chain is asked about is what the check saw."""
    access = hosted(store, TALK)
    chains, generations = Waterfalls(), []

    def compare(question: SummaryErrorQuestion, ask_next: Callable[[], bool]) -> bool:
        session = question.session.view()
        generations.append(session.content_generation)
        return ask_next()

    chains.summary_error.register("comparing", compare)
    chains.summary_error.register("image-offload", recover_summary)

    done(compact(access, a_route(NEEDS_ONE, NEEDS_ONE), chains))

    assert generations == [0, 1]


def test_r275_input_and_shrink_baseline_are_derived_again(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    route = a_route(NEEDS_ONE)

    outcome = done(compact(access, route, with_images()))

    first, second = route.requests
    assert [is_omitted(block) for block in images(first.messages[1]["content"])] == [False, False]
    assert [is_omitted(block) for block in images(second.messages[1]["content"])] == [True, False]
    # The scripted route charges 85 for an image, 20 for a placeholder.
    bare = done(compact(hosted(store, TALK, "bare"), a_route()))
    assert bare.tokens_before - outcome.tokens_before == 85 - 20


def test_r275_the_shrink_check_uses_the_price_after_the_omission(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    bare = done(compact(hosted(store, TALK, "bare"), a_route()))
    frame = bare.tokens_after - -(-len("They want a boat; it is to be blue.") // 4)
    too_long_now = says("s" * 4 * (bare.tokens_before - 65 - frame))

    with pytest.raises(CompactionSummaryError, match="the messages themselves"):
        compact(access, a_route(NEEDS_ONE, too_long_now), with_images())


def test_r278_omissions_survive_and_the_message_says_so(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    with pytest.raises(CompactionSummaryError) as refused:
        compact(access, a_route(NEEDS_ONE, fails(FailureCode.SERVER, "it burns")), with_images())

    assert omitted(again(access)) == [(3, 0)]
    assert str(refused.value).endswith("images that were omitted for it stay omitted")
    assert "unchanged" not in str(refused.value)
    *_, end = access.sessions.log("s")
    assert end.data["error"] == str(refused.value)


def test_r278_omissions_survive_a_cancellation(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, TALK)
    route = a_route(NEEDS_ONE)

    class AfterTwo:
        @property
        def is_set(self) -> bool:
            return len(route.requests) > 1

    with pytest.raises(CompactionCancelledError) as refused:
        compact(access, route, with_images(), cancellation=AfterTwo())

    assert omitted(access) == [(3, 0)]
    assert refused.value.has_omitted


def test_without_an_omission_no_message_speaks_of_one(
    store: SessionStore, a_route: RouteMaker
) -> None:
    with pytest.raises(CompactionError) as refused:
        compact(hosted(store, TALK), a_route(fails(FailureCode.SERVER)), with_images())

    assert "omitted" not in str(refused.value)


def test_r355_an_omission_stands_inside_the_bracket(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    done(compact(access, a_route(NEEDS_ONE), with_images()))

    assert types_after(access, END) == [
        "compaction/start",
        "compaction/request",
        "image/offload",
        "compaction/request",
        "compaction/summary",
        "user/message",
        "compaction/end",
    ]
    meter = metered(access)
    assert meter.state.total == meter.state.surface.fixed


def test_a_handler_that_raises_is_named_and_the_lock_is_freed(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, chains = hosted(store, TALK), Waterfalls()

    def broken(question: SummaryErrorQuestion, ask_next: Callable[[], bool]) -> bool:
        raise RuntimeError("boom")

    chains.summary_error.register("breaking", broken)

    with pytest.raises(RuntimeError, match="boom") as raised:
        compact(access, a_route(NEEDS_ONE), chains)

    assert "raised by plugin 'breaking'" in raised.value.__notes__[0]
    assert types_after(access, END) == ["compaction/start", "compaction/request", "compaction/end"]


def test_a_handler_that_always_says_it_helped_does_not_run_for_ever(
    store: SessionStore, a_route: RouteMaker
) -> None:
    chains = Waterfalls()
    chains.summary_error.register("lying", lambda question, ask_next: True)
    route = a_route()
    route.otherwise = NEEDS_ONE

    with pytest.raises(CompactionSummaryError):
        compact(hosted(store, TALK), route, chains)

    assert len(route.sent) == 51


def test_a2_the_summary_of_102_images_fits_a_limit_of_100_and_the_newest_survives(
    store: SessionStore, a_route: RouteMaker
) -> None:
    turns = [row for n in range(102) for row in turn(n + 1, size=40, images=[image(n)])]
    access = hosted(store, log(*prompted(), *turns))
    takes = Capabilities(user_images=True, budget=ImageBudget(max_images=100))
    route = a_route(takes=takes)

    outcome = done(compact(access, route, with_images()))

    (sent,) = route.sent
    assert sent.image_count <= 100
    assert len(outcome.hidden) == 202
    newest = shown(access)[-2][1]
    assert list(images(newest["content"])) == [image(101)]


def test_a4_a_summary_of_messages_and_results_with_images_fits_the_byte_limit(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows: list[Any] = [*prompted()]
    for number in range(6):
        rows += turn(number + 1, size=40, images=[heavy(number)])
        result = tool_result(f"x{number}", text("seen"), heavy(10 + number))
        rows.append(("tool/result", result))
    rows += turn(9)
    access = hosted(store, log(*rows))
    budget = ImageBudget("base64", max_bytes=8 * 1024 * 1024)
    takes = Capabilities(user_images=True, tool_images=True, budget=budget)
    route = a_route(takes=takes)

    done(compact(access, route, with_images()))

    assert [sent.image_count for sent in route.sent] == [6]
    assert sum(budget.length(900_000) for _ in range(6)) <= 8 * 1024 * 1024


def heavy(number: int) -> dict[str, Any]:
    """Return an image of 900,000 bytes."""
    block = image(number)
    return {**block, "attachment": {**block["attachment"], "bytes": 900_000}}


def test_h4_omissions_in_the_kept_part_survive_a_compaction(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    omit_oldest(access, 4)

    done(compact(access, a_route(), with_images()))

    kept = shown(access)[-2][1]
    assert [is_omitted(block) for block in images(kept["content"])] == [True, False]


def test_a_recovered_automatic_compaction_goes_on(store: SessionStore, a_route: RouteMaker) -> None:
    """Its own omissions are no change that it yields to."""
    access = hosted(store, TALK)
    engine = compactor(a_route(NEEDS_ONE), with_images(), keep_tokens=500)

    outcome = done(run(engine.compact(access, CompactionWish(trigger="pressure"))))

    assert outcome.hidden


def test_the_next_turn_works_after_a_failure_with_omissions(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)
    with pytest.raises(CompactionError):
        compact(access, a_route(NEEDS_ONE, fails(FailureCode.SERVER)), with_images())

    access.append(wishes_of(log(*turn(4))))
    access.append([message("user/message", user("u-9", text("thanks")))])

    assert shown(again(access)) == shown(access)
    assert done(compact(access, a_route(), with_images())).hidden


def test_a_failure_before_sending_is_recovered_like_one_after(store: SessionStore) -> None:
    error = LlmError(LlmFailure("x", FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=2))
    access = hosted(store, TALK)
    question = SummaryErrorQuestion(access, (7, 3), error, CompactionWish().cancellation)

    assert recover_summary(question, lambda: False)

    assert sorted(omitted(access)) == [(3, 0), (7, 0)]
