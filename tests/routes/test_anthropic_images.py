"""Pictures on the Messages API: its limits are met before sending, its refusals are understood."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.failure import FailureCode, LlmError
from everfold.llm.images import retained
from tests.providers.pictures import img
from tests.providers.refusing import Rejection, Style
from tests.providers.rules import STRICT
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import claude
from tests.routes.kit import Json, assistant, call, offloaded, picture, request, result, user
from tests.routes.talk import Talk, Talking

MIB = 2**20
UNKNOWING: Json = {
    "many_images": None,
    "max_edge": None,
    "max_image_bytes": None,
    "request_version": {"max_edge": 9999, "max_bytes": 8 * MIB},
}
"""Limits of a route that knows nothing of the provider's."""


@pytest.fixture
def talk(fake: StrictFake, versions: RequestVersions, talking: Talking) -> Talk:
    return claude(fake, versions, talking)


def seen_edges(fake: StrictFake) -> list[int]:
    assert fake.last.seen is not None
    return [image.edge for image in fake.last.seen.images]


def seen_bytes(fake: StrictFake) -> list[bytes | None]:
    assert fake.last.seen is not None
    return [image.data for image in fake.last.seen.images]


def count(messages: list[Json]) -> int:
    return sum(len(retained(message["content"])) for message in messages)


def mixed(store: FileAttachments) -> list[Json]:
    """Return 21 turns with a picture each, of which the third and the seventh are tall."""
    shown = [
        picture(store, img(width=1170, height=2532, shade=at))
        if at in (2, 6)
        else picture(store, img(width=800, height=600, shade=at))
        for at in range(21)
    ]
    return [message for block in shown for message in (user("see", block), assistant("ok"))][:-1]


def test_a_picture_just_within_the_encoded_limit_is_sent_h2(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    fake.rules = replace(STRICT, max_image_b64=5 * MIB)
    largest, larger = img(3_932_160), img(3_932_161)

    talk.ask(request(user("see", picture(store, largest), picture(store, larger))))

    assert fake.last.violation is None
    first, second = seen_bytes(fake)
    assert first == largest
    assert second is not None
    assert len(second) < 3_932_161


def test_the_encoded_length_of_one_picture_is_counted_exactly_h2(
    fake: StrictFake, versions: RequestVersions, talking: Talking, store: FileAttachments
) -> None:
    version = {"max_edge": 9999, "max_bytes": 8 * MIB}
    talk = claude(fake, versions, talking, limits={"request_version": version})

    assert talk.ask(request(user("see", picture(store, img(3_932_160)))))
    failure = talk.failure(request(user("see", picture(store, img(3_932_161)))))

    assert (failure.code, failure.offload_images) == (FailureCode.IMAGE_OFFLOAD_REQUIRED, 1)


def test_an_oversized_picture_is_omitted_and_the_session_goes_on_a1(
    fake: StrictFake, versions: RequestVersions, talking: Talking, store: FileAttachments
) -> None:
    fake.rules = replace(STRICT, max_image_b64=5 * MIB)
    talk = claude(fake, versions, talking, limits=UNKNOWING)

    left = talk.recovered([user("look", picture(store, img(5_600_000)))])
    talk.ask(request(*left, assistant("ok"), user("thanks")))

    assert len(fake.calls) == 3
    assert fake.last.seen is not None
    assert fake.last.seen.images == []


def test_every_picture_is_small_enough_for_many_from_the_start_a3(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    messages = mixed(store)
    sent: list[list[bytes | None]] = []
    for end in range(1, len(messages) + 1, 2):
        talk.ask(request(*messages[:end]))
        sent.append(seen_bytes(fake))

    assert [call.violation for call in fake.calls] == [None] * 21
    assert max(seen_edges(fake)) == 1568
    assert all(before == after[:-1] for before, after in pairwise(sent))


def test_large_pictures_among_many_are_omitted_when_refused_a3(
    fake: StrictFake, versions: RequestVersions, talking: Talking, store: FileAttachments
) -> None:
    fake.rejection = Rejection("R3")
    talk = claude(fake, versions, talking, limits=UNKNOWING)

    left = talk.recovered(mixed(store), limit=4)
    talk.ask(request(*left, assistant("ok"), user("thanks")))

    assert len(fake.calls) <= 5
    assert count(left) <= 20 or max(seen_edges(fake)) <= 2000


def test_the_true_type_of_a_picture_is_declared_a7(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    jpeg = picture(store, img(media_type="image/jpeg"), "image/png")
    webp = picture(store, img(media_type="image/webp"), "image/png")

    talk.ask(request(user("see", jpeg, webp)))

    assert [call.violation for call in fake.calls] == [None]
    assert fake.last.seen is not None
    assert [image.media_type for image in fake.last.seen.images] == ["image/jpeg", "image/webp"]


STYLES: list[tuple[Style, Json]] = [
    ("R1", {"max_body": 3_000_000}),
    ("R2", {"max_body": 3_000_000}),
    ("R3", {"max_body": 3_000_000}),
    ("R4", {"max_body": 3_000_000}),
    ("R2", {"max_images": 4}),
    ("R3", {"max_images": 4}),
    ("R4", {"max_images": 4}),
    ("R2", {"max_image_b64": 1_000_000}),
    ("R3", {"max_image_b64": 1_000_000}),
    ("R4", {"max_image_b64": 1_000_000}),
]


@pytest.mark.parametrize(("style", "rules"), STYLES)
def test_every_style_of_refusal_ends_in_success_a4(
    fake: StrictFake,
    versions: RequestVersions,
    talking: Talking,
    store: FileAttachments,
    style: Style,
    rules: Any,
) -> None:
    fake.rules, fake.rejection = replace(STRICT, **rules), Rejection(style)
    talk = claude(fake, versions, talking, limits=UNKNOWING)
    sizes = [200_000, 900_000, 300_000, 400_000, 250_000, 350_000]
    turns = [user(f"turn {n}", picture(store, img(size))) for n, size in enumerate(sizes)]

    left = talk.recovered(turns, limit=5)
    talk.ask(request(*left, assistant("ok"), user("thanks")))

    assert fake.last.violation is None
    assert fake.last.seen is not None
    assert all(f"turn {n}" in fake.last.seen.all_text for n in range(6))


def test_an_empty_413_is_recovered_from_with_pictures_in_tool_results_a4(
    fake: StrictFake, versions: RequestVersions, talking: Talking, store: FileAttachments
) -> None:
    fake.rules, fake.rejection = replace(STRICT, max_body=8 * MIB), Rejection("R1", plain="")
    talk = claude(fake, versions, talking)
    shown = [picture(store, img(900_000, shade=n)) for n in range(12)]
    turns = [user("go", *shown[:6]), assistant(call("c1")), result("c1", *shown[6:])]

    left = talk.recovered(turns)

    assert len(fake.calls) == 2
    assert 0 < count(left) < 12


def test_a_hundred_and_one_pictures_are_too_many_before_sending_a2(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    block = picture(store, img())

    with pytest.raises(LlmError) as caught:
        talk.ask(request(*[user("see", block) for _ in range(101)]))

    assert caught.value.failure.offload_images == 20
    assert fake.calls == []


def test_a_body_beyond_the_limit_is_not_sent(
    fake: StrictFake, versions: RequestVersions, talking: Talking, store: FileAttachments
) -> None:
    limits = {"max_body_bytes": 3_000_000, "body_quantum": 1_000_000}
    talk = claude(fake, versions, talking, limits=limits)
    turns = [user("see", picture(store, img(600_000, shade=n))) for n in range(6)]

    left = talk.recovered(turns)

    assert len(fake.calls) == 1
    assert count(left) == 6 - 3
    assert len(fake.last.raw) <= 3_000_000


def test_text_beyond_the_limit_is_said_at_once_v7(
    fake: StrictFake, versions: RequestVersions, talking: Talking, store: FileAttachments
) -> None:
    limits = {"max_body_bytes": 3_000, "body_quantum": 1}
    talk = claude(fake, versions, talking, limits=limits)

    with pytest.raises(LlmError) as caught:
        talk.ask(request(user("x" * 4_000, picture(store, img()))))

    assert caught.value.failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
    assert fake.calls == []


def test_a_picture_that_a_model_made_is_unsupported_r254(
    talk: Talk, store: FileAttachments
) -> None:
    with pytest.raises(LlmError) as caught:
        talk.ask(request(user("draw"), assistant(picture(store, img())), user("and?")))

    assert caught.value.failure.code == FailureCode.UNSUPPORTED_CONTENT


def test_an_omitted_picture_is_text_that_names_it_r255(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    messages = offloaded([user("see", picture(store, img(), name="boat.png"))], 1)

    talk.ask(request(*messages))

    assert fake.last.seen is not None
    assert fake.last.seen.images == []
    assert '"boat.png"' in fake.last.seen.all_text


def test_the_request_knows_how_much_of_the_budget_it_takes(
    talk: Talk, store: FileAttachments
) -> None:
    talk.ask(request(user("see", picture(store, img(3_000)), picture(store, img(5_000)))))

    assert talk.dispatched[0].image_count == 2
    assert talk.dispatched[0].image_bytes == 4_000 + 6_668


def test_capabilities_come_from_the_limits(talk: Talk) -> None:
    takes = talk.route.capabilities("m")

    assert (takes.user_images, takes.tool_images, takes.assistant_images) == (True, True, False)
    assert takes.context_window == 200_000
    assert takes.budget is not None
    assert (takes.budget.representation, takes.budget.max_images) == ("base64", 100)


def test_a_picture_costs_by_its_area(talk: Talk, store: FileAttachments) -> None:
    shown = picture(store, img(width=750, height=100))

    (price,) = talk.route.image_tokens("m", [shown])

    assert price == 100
