"""What the shipped read models say: title, usage and cost, images, pressure and breakdown."""

from typing import Any

import pytest
from hypothesis import given

from everfold.plugins.read_models import (
    Checkpoint,
    Reading,
    ReadModel,
    ReadModelDuplicateError,
    ReadModelError,
    ReadModelStuckError,
)
from everfold.projections.read_models.breakdown import CONTEXT_BREAKDOWN
from everfold.projections.read_models.images import IMAGES
from everfold.projections.read_models.pressure import CONTEXT_PRESSURE
from everfold.projections.read_models.shipped import SHIPPED, shipped_models
from everfold.projections.read_models.title import TITLE
from everfold.projections.read_models.usage import USAGE, Price, cost
from everfold.projections.token_meter.meter import Meter
from everfold.projections.token_meter.prices import image_price, tools_price
from everfold.session.events import Event
from everfold.session.lossless import decode, encode
from tests.domain.kit import assistant, image, omit, replace, system, text, tool_result, user
from tests.domain.logs import logs
from tests.domain.model import Log
from tests.projections.metering import events, header, shadow

USED = {"inputTokens": 1000, "outputTokens": 50, "cacheReadTokens": 600}


def said(model: ReadModel[Any], *records: Any) -> Any:
    """Return what a read model says of these records."""
    reading = Reading(model)
    reading.read(events(*records))
    return reading.view()


def through_json(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint as it comes back from where it was kept."""
    back = Checkpoint.from_json(decode(encode(checkpoint.to_json())[0]))
    assert back is not None
    return back


@pytest.mark.parametrize("model", SHIPPED, ids=lambda model: model.name)
@given(log=logs())
def test_going_on_from_a_checkpoint_anywhere_is_folding_all(
    model: ReadModel[Any], log: Log
) -> None:
    rows = [Event.of(record) for record in log.records]
    whole, half = Reading(model), Reading(model)
    whole.read(rows)
    half.read(rows[: len(rows) // 2])

    resumed = Reading(model, through_json(half.checkpoint()))
    resumed.read(rows)

    assert resumed.view() == whole.view()
    assert through_json(resumed.checkpoint()) == through_json(whole.checkpoint())


def test_r310_checkpoints_of_pressure_and_breakdown_have_version_5() -> None:
    assert (CONTEXT_PRESSURE.version, CONTEXT_BREAKDOWN.version) == (5, 5)


@pytest.mark.parametrize("model", SHIPPED, ids=lambda model: model.name)
def test_r310_a_checkpoint_of_another_version_is_dropped(model: ReadModel[Any]) -> None:
    old = Checkpoint(model.name, model.version - 1, 7, {"anything": 1})

    assert Reading(model, old).next_seq == 0


def test_r311_a_fold_that_fails_leaves_the_event_unread_and_fails_again() -> None:
    rows = events(
        ("user/message", user("u")),
        ("compaction/prune", shadow(5, 5, 4)),
        ("user/message", user("v"), replace(0, 0)),
    )
    reading = Reading(CONTEXT_PRESSURE)

    for _ in range(2):
        with pytest.raises(ReadModelStuckError, match="cannot fold seq 2") as stuck:
            reading.read(rows)
        assert stuck.value.seq == 2

    assert reading.next_seq == 2
    assert reading.view()["tokens"] == 4


def test_the_title_is_the_newest_one() -> None:
    titled = ("session/title", {"title": "Boats", "messageSeqs": [0], "source": {"kind": "llm"}})
    again = ("session/title", {"title": "Ships", "messageSeqs": [0], "source": {"kind": "llm"}})

    assert said(TITLE, titled, again) == {"title": "Ships", "isFallback": False, "seq": 1}


def test_m4_without_a_title_the_words_of_a_person_stand_for_it() -> None:
    injected = {**user("i", text("environment")), "source": {"kind": "agent-instructions"}}
    rows = [("user/message", injected), ("user/message", user("u", text(" paint \n it  blue ")))]

    assert said(TITLE, *rows) == {"title": "paint it blue", "isFallback": True, "seq": None}


def test_long_first_words_are_shortened() -> None:
    title = said(TITLE, ("user/message", user("u", text("word " * 100))))["title"]

    assert len(title) <= 80
    assert title.endswith("word…")


def test_usage_is_added_up_by_model_with_failed_attempts_and_summaries() -> None:
    chunk = {"type": "chunk", "time": 1, "chunk": {"type": "usage", "usage": USED}}
    summary = {"provider": "q", "model": "s", "usage": {"inputTokens": 5, "outputTokens": 6}}

    view = said(
        USAGE,
        header(),
        ("assistant/attempt", {"turn": 1, "step": 1, "stream": [chunk]}),
        ("assistant/message", assistant("a", text("x"), usage=USED)),
        ("assistant/message", assistant("b", text("x"))),
        ("compaction/summary", summary),
    )

    assert view["own"] == [
        {
            "provider": "p",
            "model": "m",
            "cacheReadTokens": 1200,
            "inputTokens": 2000,
            "outputTokens": 100,
            "requests": 2,
        },
        {"provider": "q", "model": "s", "inputTokens": 5, "outputTokens": 6, "requests": 1},
    ]


def test_what_a_parent_spent_is_not_the_forks_own() -> None:
    view = said(
        USAGE,
        ("assistant/message", assistant("a", text("x"), usage=USED)),
        ("session/end-seed", {"inherited": True}),
        ("assistant/message", assistant("b", text("y"), usage=USED)),
        ("session/end-seed", {}),
    )

    assert [line["requests"] for line in view["own"]] == [1]
    assert [line["requests"] for line in view["inherited"]] == [1]


def test_cost_prices_cached_tokens_apart() -> None:
    view = said(USAGE, ("assistant/message", assistant("a", text("x"), usage=USED)))
    prices = {("p", "m"): Price(input=10, output=100, cache_read=1)}

    assert cost(view, prices) == pytest.approx((400 * 10 + 600 * 1 + 50 * 100) / 1_000_000)
    assert cost(view, {}) is None


def test_every_image_is_listed_with_its_state() -> None:
    rows = [
        ("user/message", user("u", image(1), image(2))),
        ("tool/result", tool_result("c", image(3, offloaded=True))),
        ("assistant/message", assistant("a", image(4))),
        ("image/offload", omit((0, [1]))),
        ("user/message", user("v", text("short")), replace(0, 0)),
        ("user/message", user("w", image(5), image(6))),
        ("image/offload", omit((5, [0, 1]))),
        ("image/bring-back", omit((5, [1]))),
    ]

    view = said(IMAGES, *rows)

    facts = [(i["seq"], i["index"], i["state"], i["decidedBy"], i["hiddenBy"]) for i in view]
    assert facts == [
        (0, 0, "hidden", None, 4),
        (0, 1, "hidden", 3, 4),
        (1, 0, "omitted", 1, None),
        (2, 0, "output", None, None),
        (5, 0, "omitted", 6, None),
        (5, 1, "retained", 7, None),
    ]
    assert [i["isOmitted"] for i in view] == [False, True, True, False, True, False]
    assert view[0]["attachment"] == image(1)["attachment"]


@given(logs())
def test_pressure_is_the_meters_estimate_while_totals_agree(log: Log) -> None:
    rows = [Event.of(record) for record in log.records]
    meter, reading = Meter(), Reading(CONTEXT_PRESSURE)
    meter.read(rows)

    reading.read(rows)

    assert reading.state.total == meter.state.total


def test_pressure_says_how_full_the_window_is() -> None:
    context = ("request/context", {"provider": "p", "model": "m", "contextWindow": 4000})
    answered = ("assistant/message", assistant("a", text("x"), usage=USED))

    view = said(CONTEXT_PRESSURE, header(), context, answered, ("user/message", user("u")))

    assert view == {
        "tokens": 1054,
        "contextWindow": 4000,
        "share": 0.2635,
        "isCounted": True,
        "provider": "p",
        "model": "m",
    }


def test_pressure_falls_with_a_compaction() -> None:
    rows = [
        ("user/message", user("u", text("a" * 4000))),
        ("compaction/summary", shadow(0, 0, 1008)),
        ("user/message", user("v", text("b" * 40)), replace(0, 0)),
    ]

    assert said(CONTEXT_PRESSURE, *rows)["tokens"] == 18


def test_a5_the_breakdown_counts_tokens_images_and_bytes() -> None:
    tools = [{"name": "t", "description": "d", "parameters": {}}]
    summary = {**user("k", text("abcd")), "source": {"kind": "plugin", "plugin": "compact"}}
    rows = [
        ("system/message", system("s", text("abcd"))),
        header(tools=tools),
        ("user/message", user("u", text("abcd"), image(1), image(2))),
        ("tool/result", tool_result("c", text("abcd"))),
        ("assistant/message", assistant("a", text("abcd"))),
        ("user/message", summary),
        ("image/offload", omit((2, [0]))),
    ]

    view = said(CONTEXT_BREAKDOWN, *rows)

    assert view == {
        "tokens": {
            "system": 5,
            "user": 9,
            "assistant": 9,
            "toolResults": 13,
            "summaries": 9,
            "images": 2 * image_price(image(1)),
            "tools": tools_price(tools),
        },
        "totalTokens": 45 + 2 * image_price(image(1)) + tools_price(tools),
        "messageCount": 5,
        "imageCount": 1,
        "omittedImageCount": 1,
        "imageBytes": 1002,
    }


def test_names_are_registered_once_and_removed_exactly() -> None:
    models = shipped_models()
    mine = ReadModel("mine", 1, frozenset(), int, lambda s, e: s, int, int, int)
    dispose = models.register(mine)

    with pytest.raises(ReadModelDuplicateError, match="'mine'"):
        models.register(mine)
    dispose()
    dispose()

    assert len(models) == len(SHIPPED)
    with pytest.raises(ReadModelError, match="there are: context-breakdown"):
        models.find("mine")


@pytest.mark.parametrize(
    "data", [None, [], {"name": 1}, {"name": "n", "version": 1, "nextSeq": -1}]
)
def test_what_is_no_checkpoint_is_none(data: Any) -> None:
    assert Checkpoint.from_json(data) is None
