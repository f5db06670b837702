"""The token meter: R302 to R311."""

import pytest
from hypothesis import given

from everfold.projections.token_meter.errors import MeterError
from everfold.projections.token_meter.meter import Meter
from everfold.projections.token_meter.prices import image_price, message_price, tools_price
from everfold.session.derive import message_of
from everfold.session.events import Event
from tests.domain.kit import assistant, image, omit, replace, system, text, tool_result, user
from tests.domain.logs import logs
from tests.domain.model import Log
from tests.projections.metering import HEADER, events, header, hundred_each, metered, shadow

PICTURES = ("user/message", user("u", text("see"), image(1), image(2)))
ANSWER = assistant("a", text("fine"))
USAGE = {"inputTokens": 1000, "outputTokens": 10}


@given(logs())
def test_the_metered_surface_is_the_surface_of_the_log(log: Log) -> None:
    meter = Meter()

    meter.read(Event.of(record) for record in log.records)

    surface = meter.state.surface
    assert [node.seq for node in surface.nodes] == list(log.nodes)
    stored = [message_of(Event.of(log.records[seq])) for seq in log.nodes]
    assert [node.fixed for node in surface.nodes] == [message_price(m or {}) for m in stored]
    assert surface.fixed == surface.price() == sum(node.fixed for node in surface.nodes)


@given(logs())
def test_reading_in_two_parts_is_reading_at_once(log: Log) -> None:
    rows = [Event.of(record) for record in log.records]
    whole, parts = Meter(), Meter()

    whole.read(rows)
    parts.read(rows[: len(rows) // 2])
    parts.read(rows)

    assert parts.state == whole.state


def test_the_estimate_is_the_tools_and_the_surface() -> None:
    tools = [{"name": "t", "description": "d", "parameters": {}}]
    meter = metered(header(tools=tools), ("user/message", user("u", text("abcd"))))

    assert meter.estimate() == tools_price(tools) + 9


def test_r302_an_omission_marks_images_and_keeps_node_and_fixed_price() -> None:
    before = metered(PICTURES).state.surface.nodes[0]

    after = metered(PICTURES, ("image/offload", omit((0, [1])))).state.surface.nodes[0]

    assert (after.seq, after.fixed) == (before.seq, before.fixed)
    assert [mark.get("offloaded") for mark in after.images] == [None, True]


def test_r302_an_image_that_is_brought_back_is_priced_as_an_image_again() -> None:
    bring_back = ("image/bring-back", omit((0, [1])))
    meter = metered(PICTURES, ("image/offload", omit((0, [0, 1]))), bring_back)

    assert meter.estimate(hundred_each) - metered(PICTURES).estimate(hundred_each) == 7 - 100


def test_r303_an_anchor_keeps_the_images_that_it_was_counted_for() -> None:
    answered = (header(), PICTURES, ("assistant/message", {**ANSWER, "usage": USAGE}))
    meter = metered(*answered, ("image/offload", omit((1, [0]))))

    anchor = meter.state.anchor

    assert anchor is not None
    assert [image.get("offloaded") for image in anchor.surface.nodes[0].images] == [None, None]
    # What the omission saves is taken off what the provider counted.
    assert meter.estimate(hundred_each) == 1010 - 100 + 7


def test_r304_a_route_prices_all_images_in_order_and_placeholders_for_omitted_ones() -> None:
    asked: list[list[object]] = []

    def price(images: object) -> list[int]:
        assert isinstance(images, list)
        asked.append([image["attachment"]["bytes"] for image in images])
        return hundred_each(images)

    meter = metered(
        PICTURES,
        ("tool/result", tool_result("c", image(3))),
        ("image/offload", omit((0, [0]))),
    )

    difference = meter.estimate(price) - meter.estimate()

    assert asked == [[1001, 1002, 1003]]
    assert difference == 7 + 100 + 100 - 3 * image_price(image(1))


def test_r305_another_number_of_prices_than_images_is_an_error() -> None:
    with pytest.raises(MeterError, match=r"1 price\(s\) for 2 image"):
        metered(PICTURES).estimate(lambda images: [1])


def test_r306_a_replacement_takes_the_place_of_its_range() -> None:
    meter = metered(
        ("system/message", system("s", text("be brief"))),
        ("user/message", user("u", text("a" * 400))),
        ("user/message", user("v", text("b" * 400))),
        ("user/message", user("w", text("c"))),
        ("user/message", user("x", text("d")), replace(1, 2)),
    )

    assert [node.seq for node in meter.state.surface.nodes] == [0, 4, 3]
    assert meter.estimate() == 6 + 9 + 9


def test_r306_an_unknown_range_is_an_error() -> None:
    rows = [("user/message", user("u")), ("user/message", user("v"), replace(7, 7))]

    with pytest.raises(MeterError, match="covers 7 to 7"):
        metered(*rows)


def test_r307_usage_is_reused_for_an_equal_header() -> None:
    answered = (header(), PICTURES, ("assistant/message", {**ANSWER, "usage": USAGE}))
    more = ("user/message", user("v", text("abcd")))

    assert metered(*answered, header("series"), more).estimate() == 1010 + 9


def test_r307_usage_is_not_reused_for_another_header() -> None:
    answered = (header(), PICTURES, ("assistant/message", {**ANSWER, "usage": USAGE}))
    other = {"config": {**HEADER["config"], "model": "n"}}
    meter = metered(*answered)

    assert meter.estimate(header=other) == meter.state.surface.fixed


def test_r307_usage_below_the_estimate_of_its_anchor_is_not_reused() -> None:
    usage = {"inputTokens": 2, "outputTokens": 1}
    meter = metered(header(), PICTURES, ("assistant/message", {**ANSWER, "usage": usage}))

    assert meter.estimate() == meter.state.surface.fixed


def test_r307_a_total_that_the_provider_states_counts() -> None:
    usage = {**USAGE, "totalTokens": 1500}

    assert metered(header(), ("assistant/message", {**ANSWER, "usage": usage})).estimate() == 1500


def test_r308_an_omission_needs_no_shadow_price() -> None:
    before = metered(PICTURES)

    after = metered(PICTURES, ("image/offload", omit((0, [0, 1]))))

    assert after.state.total == before.state.total == after.state.surface.fixed


def test_r309_a_replacement_is_priced_by_the_event_directly_before_it() -> None:
    long, short = user("u", text("a" * 400)), user("v", text("abcd"))
    price = message_price(long)

    meter = metered(
        ("user/message", long),
        ("compaction/prune", shadow(0, 0, price)),
        ("user/message", short, replace(0, 0)),
    )

    assert meter.state.total == meter.state.surface.fixed == message_price(short)


def test_r309_without_a_price_before_it_the_running_total_stays() -> None:
    long, short = user("u", text("a" * 400)), user("v", text("abcd"))
    rows = [
        ("user/message", long),
        ("compaction/prune", shadow(0, 0, 104)),
        ("turn/start", {"turn": 1}),
        ("user/message", short, replace(0, 0)),
    ]

    meter = metered(*rows)

    assert meter.state.total == message_price(long)
    assert meter.state.surface.fixed == message_price(short)


def test_r309_a_price_for_another_range_is_an_error() -> None:
    rows = [
        ("user/message", user("u")),
        ("user/message", user("v")),
        ("compaction/prune", shadow(0, 1, 8)),
        ("user/message", user("w"), replace(1, 1)),
    ]

    with pytest.raises(MeterError, match="covers 1 to 1, the price before it is for 0 to 1"):
        metered(*rows)


def test_r311_an_error_leaves_the_event_unread_and_fails_again() -> None:
    rows = events(("user/message", user("u")), ("user/message", user("v"), replace(5, 5)))
    meter = Meter()

    for _ in range(2):
        with pytest.raises(MeterError):
            meter.read(rows)

    assert meter.state.next_seq == 1
    assert [node.seq for node in meter.state.surface.nodes] == [0]
