"""Field reports, group H, through the whole product: what is counted, and what is left out for it."""

from dataclasses import replace
from itertools import pairwise

import pytest

from everfold.projections.compaction.engine import Compacted
from everfold.projections.image_offload.decisions import bring_back, omit
from everfold.session.errors import SessionError
from tests.end_to_end.conftest import Opening
from tests.end_to_end.history import says, turn
from tests.end_to_end.product import (
    UNCHECKED,
    image,
    pictures_sent,
    route_table,
    shown_texts,
)
from tests.end_to_end.standing import Standing
from tests.providers.pictures import img
from tests.providers.refusing import Rejection
from tests.providers.strict_fake import StrictFake

MIB = 2**20


def test_h1_a_count_limit_costs_one_refusal_and_the_oldest_five(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_images=20)
    standing.under_test = {"count"}
    product = opened(UNCHECKED)
    product.most_calls = 2

    result = product.say("see", *[product.old_picture(img(45_000, shade=n)) for n in range(25)])

    assert result.kind == "completed"
    assert product.kept() == [False] * 5 + [True] * 20
    assert len(product.data("image/offload")) == 1
    assert pictures_sent(product) == 20


def test_h1_a_count_limit_that_is_never_named_ends_all_the_same(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_images=20)
    fake.rejection = Rejection("R4")
    standing.under_test = {"count"}
    product = opened(UNCHECKED)
    product.most_calls = 2

    result = product.say("see", *[product.old_picture(img(shade=n)) for n in range(25)])

    assert result.kind == "completed"
    assert product.kept()[-1]


def test_h2_the_encoded_length_is_what_counts_to_the_byte(
    opened: Opening, fake: StrictFake
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=5_242_880)
    limits = {
        "max_image_bytes": 5_242_880,
        "request_version": {"max_edge": 9000, "max_bytes": 8_000_000},
    }
    product = opened(limits)
    product.most_calls = 2

    product.say("fits", image(img(3_932_160)))
    product.say("is over", product.old_picture(img(3_932_161)))

    assert [result.kind for result in product.results] == ["completed"] * 2
    assert product.kept()[1] is False
    first = fake.calls[0].seen
    assert first is not None
    assert [len(each.encoded) for each in first.images] == [5_242_880]


def test_h3_a_smaller_gateway_omits_for_good_and_in_batches(
    opened: Opening, fake: StrictFake, wire: str, standing: Standing
) -> None:
    small = replace(fake.rules, max_body=4 * MIB)
    standing.under_test = {"body"}
    wide = route_table(fake, wire, {**UNCHECKED, "max_body_bytes": 20 * MIB})
    narrow = route_table(
        fake, wire, {**UNCHECKED, "max_body_bytes": 4 * MIB, "body_quantum": 2 * MIB}
    )
    product = opened(routes={"wide": wide, "narrow": narrow}, fakes={"wide": fake})
    product.most_calls = 1 + 1 + 1 + 10
    product.say("see", *[image(img(800_000, shade=n)) for n in range(10)])
    all_rules, fake.rules = fake.rules, small

    switched = product.say("and now?", route="narrow")
    fake.rules = all_rules
    back = product.say("and here?", route="wide")
    after_the_switch = product.kept()
    fake.rules = small
    for n in range(10):
        product.say(f"one more {n}", image(img(800_000, shade=20 + n)), route="narrow")

    assert (switched.kind, back.kind) == ("completed", "completed")
    assert sum(after_the_switch) == pictures_sent(product, 2) < 4
    assert {result.kind for result in product.results} == {"completed"}
    assert len(product.data("image/offload")) - 1 <= 3 + 2
    assert all(request.violation is None for request in fake.calls)


def test_h4_pictures_in_the_kept_part_fit_and_placeholders_say_what_is_gone(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_body=6 * MIB)
    standing.under_test = {"body"}
    product = opened(UNCHECKED, plugin={"compaction": {"keep_tokens": 20_000}})
    product.most_calls = 2 + 2
    heavy = [product.old_picture(img(900_000, shade=n)) for n in range(8)]
    product.append(*turn(1, "w" * 9_000), *turn(2, "w" * 80_000), *turn(3, "w" * 4_000, *heavy))

    outcome = product.compact(provider="main", model="m-1")
    result = product.say("thanks")

    assert isinstance(outcome, Compacted)
    assert result.kind == "completed"
    assert product.kept() == [False] * 4 + [True] * 4 or product.kept() == [False] * 3 + [True] * 5
    gone = heavy[0]["attachment"]["attachmentId"]
    assert gone in shown_texts(product)


def test_h5_of_two_equal_pictures_the_older_goes_and_a_models_own_never(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_images=2)
    standing.under_test = {"count"}
    product = opened({**UNCHECKED, "images": {"user": True, "tool": True, "assistant": False}})
    product.most_calls = 4
    p, q = product.old_picture(img(shade=1)), product.old_picture(img(shade=2))

    product.say("p", p)
    product.say("q", q)
    product.say("p again", p)

    assert {result.kind for result in product.results} == {"completed"}
    assert product.kept() == [False, True, True]
    (omission,) = product.data("image/offload")
    (target,) = omission["targets"]
    with pytest.raises(SessionError):
        omit(product.access, {target["seq"]: target["imageIndexes"]})


def test_h5_indexes_count_pictures_that_are_omitted_already(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2
    product.say("see", *[image(img(shade=n)) for n in range(3)])
    (seq,) = [e.seq for e in product.log() if e.type == "user/message"]

    omit(product.access, {seq: [0]})
    omit(product.access, {seq: [1]})
    product.say("what is left?")

    assert product.kept() == [False, False, True]
    assert pictures_sent(product) == 1


def test_h_a_picture_that_is_brought_back_is_sent_again(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 2
    product.say("see", image(img(shade=1)))
    (seq,) = [e.seq for e in product.log() if e.type == "user/message"]
    omit(product.access, {seq: [0]})

    bring_back(product.access, {seq: [0]})
    product.say("and now?")

    assert pictures_sent(product) == 1


def test_h_the_prefix_that_is_sent_moves_only_at_an_omission(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_images=6)
    standing.under_test = {"count"}
    limits = {**UNCHECKED, "inline": {"max_images": 6, "count_quantum": 3}}
    product = opened(limits)
    product.most_calls = 20

    for n in range(20):
        product.say(f"n{n}", image(img(shade=n)))

    shown = [
        [each.encoded for each in request.seen.images]
        for request in fake.calls
        if request.seen is not None
    ]
    moved = sum(after[: len(before)] != before for before, after in pairwise(shown))
    assert moved == len(product.data("image/offload")) <= 5
    assert all(request.violation is None for request in fake.calls)


def test_h_pictures_that_a_model_made_are_said_to_be_unsupported(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = opened()
    product.most_calls = 0
    standing.has_last_message = False
    product.append(*turn(1), says(1, "drawn", product.old_picture(img())))

    result = product.say("nice")

    assert result.failure is not None
    assert result.failure.code == "UNSUPPORTED_CONTENT"
    assert "decisions.occurrences" in str(result.advice)
