"""Summary requests that fail, through the whole product: retried, cancelled, refused as too large."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from everfold.plugins.waterfalls import SummaryErrorQuestion
from everfold.projections.compaction.engine import Compacted
from everfold.projections.compaction.errors import CompactionSummaryError
from everfold.projections.compaction.job import CompactionWish
from tests.end_to_end.conftest import Opening
from tests.end_to_end.history import turns
from tests.end_to_end.product import Product, image, pictures_sent, run
from tests.end_to_end.standing import Standing
from tests.providers.answers import Answer, Refuse
from tests.providers.pictures import img
from tests.providers.refusing import Rejection
from tests.providers.strict_fake import StrictFake

SMALL = {"compaction": {"keep_tokens": 100, "min_span_tokens": 50}}
SUMMARY = Answer("They spoke of boats.")
BUSY = Refuse(503, b"Service Unavailable")
SLOW = Answer("They spoke of boats, and then ", piece=1, between_s=20)


def limited(**headers: str) -> Refuse:
    """Return a refusal for too many requests."""
    return Refuse(429, b'{"error": {"message": "slow down"}}', headers)


def talked(opened: Opening, most_calls: int, **limits: int) -> Product:
    """Return a product with a conversation that may be summarised."""
    product = opened(limits or None, plugin=SMALL)
    product.most_calls = most_calls
    product.append(*turns(10, "w" * 200))
    product.say("hello")
    return product


def bracket(product: Product) -> list[str]:
    """Return the types of events from the newest compaction's start on."""
    types = [event.type for event in product.log()]
    return types[len(types) - 1 - types[::-1].index("compaction/start") :]


def test_a_storm_of_503_is_waited_out(opened: Opening, fake: StrictFake) -> None:
    product = talked(opened, 5)
    fake.will(BUSY, BUSY, SUMMARY)

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    assert bracket(product) == [
        "compaction/start",
        "compaction/request",
        "compaction/retry",
        "compaction/retry",
        "compaction/summary",
        "user/message",
        "compaction/end",
    ]
    sent = [call.raw for call in fake.calls[1:4]]
    assert sent[0] == sent[1] == sent[2]
    assert product.say("and now?").kind == "completed"


def test_a_429_is_answered_with_the_wait_that_it_asks_for(
    opened: Opening, fake: StrictFake
) -> None:
    product = talked(opened, 4)
    fake.will(limited(**{"retry-after-ms": "40"}), SUMMARY)

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    (retry,) = product.data("compaction/retry")
    assert retry["delayMs"] == 40
    assert (retry["failure"]["code"], retry["failure"]["providerRetryAfterMs"]) == (
        "RATE_LIMIT",
        40,
    )
    assert product.say("and now?").kind == "completed"


def test_a_lost_connection_is_tried_again(opened: Opening, fake: StrictFake) -> None:
    product = talked(opened, 4)
    fake.will(replace(SUMMARY, cut="mid-frame"), SUMMARY)

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    assert [each["failure"]["code"] for each in product.data("compaction/retry")] == ["TRANSPORT"]


def test_a_provider_that_stays_away_ends_the_compaction_and_not_the_session(
    opened: Opening, fake: StrictFake
) -> None:
    product = talked(opened, 5)
    before = product.messages()
    fake.will(BUSY, BUSY, BUSY)

    with pytest.raises(CompactionSummaryError, match="SERVER"):
        product.compact()

    assert bracket(product) == [
        "compaction/start",
        "compaction/request",
        "compaction/retry",
        "compaction/retry",
        "compaction/end",
    ]
    assert product.messages() == before
    assert product.say("and now?").kind == "completed"


Until = Callable[[Product, StrictFake], bool]
POINTS: dict[str, tuple[Answer | Refuse, Until]] = {
    "request": (SLOW, lambda _product, fake: len(fake.calls) == 2),
    "pause": (
        limited(**{"retry-after": "60"}),
        lambda product, _fake: bool(product.data("compaction/retry")),
    ),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_summary_that_is_cancelled_leaves_the_log_clean(
    opened: Opening, fake: StrictFake, point: str
) -> None:
    answer, is_there = POINTS[point]
    product = talked(opened, 3)
    before = product.messages()
    fake.will(answer)

    async def cancelled() -> None:
        work = product.host.compactor().compact(product.access, CompactionWish())
        task = asyncio.create_task(work)
        while not is_there(product, fake):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await product.host.disconnect()

    run(cancelled())

    *_, end = product.data("compaction/end")
    assert end["error"] == "cancelled"
    assert product.messages() == before
    assert product.say("and now?").kind == "completed"


def test_a_turn_that_is_cancelled_while_its_summary_is_waited_for_is_closed(
    opened: Opening, fake: StrictFake
) -> None:
    product = talked(opened, 3, context_window=2_000)
    agent = product.agent()
    fake.will(limited(**{"retry-after": "60"}))
    long = "w" * 5_000

    async def cancelled() -> str:
        task = asyncio.create_task(agent.ask(long))
        while not product.data("compaction/retry"):
            await asyncio.sleep(0.01)
        agent.cancel()
        result = await task
        await product.host.disconnect()
        return result.kind

    assert run(cancelled()) == "aborted"
    (end,) = product.data("compaction/end")
    # Whichever of the two sees it first: the wait, or the task that waits.
    assert end["error"] in (
        "cancelled",
        "the compaction was cancelled; older messages are in place",
    )
    assert [event.type for event in product.log()][-2:] == ["step/end", "turn/end"]


def test_pictures_in_the_span_that_make_the_summary_too_large_are_omitted_for_it(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    standing.under_test.add("body")
    product = opened(plugin=SMALL)
    product.most_calls = 12
    for shade in range(3):
        product.say("what is on this? " + "w" * 200, image(img(40_000, shade=shade)))
    product.say("and in words?")
    sent = pictures_sent(product)
    fake.rules = replace(fake.rules, max_body=90_000)
    fake.rejection = Rejection("R1")
    fake.will(SUMMARY)

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    events = bracket(product)
    assert sent == 3
    assert "image/offload" in events
    assert events.index("image/offload") < events.index("compaction/summary")
    assert product.data("compaction/retry") == []
    assert product.say("and now?").kind == "completed"


def test_a_plugin_that_raises_about_a_failed_summary_costs_no_turn(
    opened: Opening, fake: StrictFake
) -> None:
    product = talked(opened, 5, context_window=2_000)
    asked: list[str] = []

    def broken(question: SummaryErrorQuestion, _ask_next: Callable[[], bool]) -> bool:
        asked.append(str(question.error))
        raise RuntimeError("a plugin's fault")

    product.host.waterfalls.summary_error.register("breaking", broken)
    fake.will(BUSY)

    result = product.say("w" * 5_000)

    assert result.kind == "completed"
    assert len(asked) == 1
    assert bracket(product)[:3] == ["compaction/start", "compaction/request", "compaction/end"]
    assert product.data("compaction/end")[0]["error"] == "a plugin's fault"
