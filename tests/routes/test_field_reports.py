"""Field reports about what providers refuse, on every wire; each test names its case."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.llm.failure import FailureCode
from everfold.llm.images import retained
from tests.providers.pictures import corrupt, img
from tests.providers.refusing import Rejection
from tests.providers.strict_fake import StrictFake
from tests.routes.kit import LOOK, Json, assistant, call, picture, request, result, user
from tests.routes.talk import Talk

MakeTalk = Callable[..., Talk]


def seen_images(fake: StrictFake) -> int:
    assert fake.last.seen is not None
    return len(fake.last.seen.images)


def kept(messages: list[Json]) -> list[int]:
    """Return how many pictures each message still has."""
    return [len(retained(message["content"])) for message in messages]


def exchange(index: int, *blocks: Json) -> list[Json]:
    return [user(f"turn {index}", *blocks), assistant(f"answer {index}")]


def test_a1_an_oversized_picture_is_omitted_and_the_session_goes_on(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=5_242_880)
    talk = make_talk(request_version={"max_bytes": 6_000_000})

    left = talk.recovered([user("look", picture(store, img(5_600_000)))])
    talk.ask(request(*left, assistant("ok"), user("thanks")))

    assert kept(left) == [0]
    assert len(fake.calls) == 3
    assert fake.last.seen is not None
    assert "look" in fake.last.seen.all_text


def test_a2_too_many_pictures_keep_the_newest(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_images=100)
    messages = [m for n in range(102) for m in exchange(n, picture(store, img(shade=n)))]

    talk = make_talk(inline={"max_images": None, "count_quantum": 1})

    left = talk_left = talk.recovered([*messages, user("so?")])

    assert len(fake.calls) == 2
    assert kept(talk_left)[0] == 0
    assert kept(left)[-3] == 1
    assert seen_images(fake) == 100


def test_a3_dimensions_among_many_pictures_recover_in_four_calls(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rejection = Rejection("R3")
    sizes = [(1170, 2532) if n in (3, 7) else (800, 600) for n in range(1, 22)]
    pictures = [
        picture(store, img(width=width, height=height, shade=n))
        for n, (width, height) in enumerate(sizes)
    ]
    messages = [m for n, block in enumerate(pictures) for m in exchange(n, block)]

    make_talk(request_version={"max_edge": 8000}).recovered([*messages, user("so?")])

    assert len(fake.calls) <= 4


@pytest.mark.parametrize("plain", ["Payload Too Large", ""])
def test_a4_413_with_any_body_recovers(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments, plain: str
) -> None:
    fake.rules = replace(fake.rules, max_body=8 * 2**20)
    fake.rejection = Rejection("R1", plain)
    blocks = [picture(store, img(900_000, shade=n)) for n in range(12)]
    messages = [user("look", *blocks[:6]), assistant(call("c")), result("c", *blocks[6:])]

    left = make_talk().recovered(messages, tools=[LOOK])

    assert len(fake.calls) == 2
    assert kept(left) == [0, 0, 6]


def test_a5_a_known_body_limit_is_met_before_anything_is_sent(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_body=32_000_000)
    talk = make_talk(
        context_window=1_000_000,
        max_body_bytes=32_000_000,
        inline={"max_bytes": None, "byte_quantum": 1},
    )

    left = talk.recovered([user(picture(store, img(610_000, shade=n))) for n in range(42)])

    assert len(fake.calls) == 1
    assert sum(kept(left)) == 39


def test_a6_the_body_after_a_size_refusal_differs(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=5_000)

    make_talk().recovered([user(picture(store, img(9_000, shade=n))) for n in range(3)])

    bodies = [call.raw for call in fake.calls]
    assert all(one != other for one, other in pairwise(bodies))


def test_a7_an_old_row_with_a_wrong_type_is_sent_with_the_true_one(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    wrong = picture(store, img(media_type="image/jpeg"), "image/png")

    make_talk().ask(request(user(wrong)))

    assert wrong["attachment"]["mediaType"] == "image/png"
    assert len(fake.accepted) == 1


def test_a8_a_vague_refusal_ends_in_an_answer_within_five_calls(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    bad = img(shade=3)
    fake.rules = replace(fake.rules, cannot_decode=frozenset([bad]))
    fake.rejection = Rejection("R4")

    left = make_talk().recovered([user(picture(store, img(shade=n))) for n in range(9)])

    assert len(fake.calls) <= 5
    assert kept(left)[3] == 0


def test_a8_a_picture_that_does_not_decode_is_found_before_anything_is_sent(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    datas = [corrupt(img(900)) if n == 3 else img(shade=n) for n in range(9)]

    left = make_talk().recovered([user(picture(store, data)) for data in datas])

    assert kept(left) == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert len(fake.calls) == 1


def test_a9_a_picture_with_a_long_side_is_sent_smaller(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    blocks = [picture(store, img(30_000, shade=n)) for n in range(5)]
    blocks.append(picture(store, img(width=9000, height=200)))
    calls = [call(f"c{n}") for n in range(6)]

    make_talk().ask(
        request(
            user("read them"),
            assistant(*calls),
            *[result(f"c{n}", block) for n, block in enumerate(blocks)],
            tools=[LOOK],
        )
    )

    assert len(fake.accepted) == 1
    assert seen_images(fake) == 6


def test_a10_empty_texts_in_old_logs_are_accepted(fake: StrictFake, make_talk: MakeTalk) -> None:
    messages = [
        user("hi"),
        assistant(""),
        user("   "),
        assistant({"type": "reasoning", "text": "only this"}),
        user("and"),
        assistant(call("c1")),
        result("c1", ""),
    ]

    make_talk().ask(request(*messages, tools=[LOOK]))

    assert len(fake.accepted) == 1
    assert fake.last.seen is not None
    assert "(blank message)" in fake.last.seen.all_text
    assert "(no output)" in fake.last.seen.all_text


@pytest.mark.parametrize("style", ["R5", "R6"])
def test_a11_a_limit_without_a_message_costs_two_unchanged_retries(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments, style: Any
) -> None:
    fake.rules = replace(fake.rules, max_body=2_000_000)
    fake.rejection = Rejection(style)
    talk = make_talk(silent_failure_bytes=1_600_000)

    left = talk.recovered([user(picture(store, img(300_000, shade=n))) for n in range(6)])

    bodies = [call.raw for call in fake.calls]
    assert bodies[:3] == [bodies[0]] * 3
    assert len(bodies) == 4
    assert sum(kept(left)) == 3


def test_h1_a_count_limit_omits_the_oldest_five(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_images=20)
    messages = [user(picture(store, img(45_000, shade=n))) for n in range(25)]

    left = make_talk(inline={"count_quantum": 1}).recovered(messages)

    assert kept(left) == [0] * 5 + [1] * 20
    assert len(fake.calls) == 2


def test_h1_a_count_limit_without_a_number_ends(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_images=20)
    fake.rejection = Rejection("R4")

    left = make_talk().recovered([user(picture(store, img(shade=n))) for n in range(25)])

    assert len(fake.calls) == 2
    assert sum(kept(left)) == 12


def test_h2_encoded_bytes_are_counted_exactly(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=5_242_880)
    talk = make_talk(max_image_bytes=5_242_880, request_version={"max_bytes": 6_000_000})
    fits, is_over = picture(store, img(3_932_160)), picture(store, img(3_932_161))

    assert kept(talk.recovered([user(fits)])) == [1]
    assert kept(talk.recovered([user(is_over)])) == [0]
    assert all(call.violation is None for call in fake.calls)


def test_h2_the_body_limit_is_exact_with_prefix_and_quoting(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    message = user('say "hi"\n', picture(store, img(50_000)))
    make_talk().ask(request(message))
    length = len(fake.last.raw)

    make_talk(max_body_bytes=length).ask(request(message))
    failure = make_talk(max_body_bytes=length - 1).failure(request(message))

    assert failure.code == FailureCode.IMAGE_OFFLOAD_REQUIRED
    assert f"{length} bytes, {length - 1}" in failure.message


def test_h3_a_smaller_route_omits_for_good_and_in_batches(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    wide = make_talk(max_body_bytes=20 * 2**20)
    narrow = make_talk(max_body_bytes=4 * 2**20, body_quantum=2 * 2**20)
    messages = [user(picture(store, img(800_000, shade=n))) for n in range(10)]
    wide.ask(request(*messages))

    left = narrow.recovered(messages)
    wide.ask(request(*left))

    assert sum(kept(left)) == 2
    assert seen_images(fake) == 2


def test_v7_pictures_of_a_model_alone_over_the_budget_are_said_at_once(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    talk = make_talk(images={"assistant": True}, inline={"max_images": 1, "count_quantum": 1})
    made = [assistant(picture(store, img(shade=n))) for n in range(2)]

    failure = talk.failure(request(user("draw", picture(store, img())), *made, user("so?")))

    assert failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
    assert fake.calls == []


def test_v7_text_alone_over_the_body_limit_is_said_at_once(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    failure = make_talk(max_body_bytes=5_000).failure(
        request(user("x" * 6_000, picture(store, img())))
    )

    assert failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
    assert fake.calls == []


def test_d13_a_full_window_is_said_by_its_code(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.rules = replace(fake.rules, max_chars=1_000)

    failure = make_talk().failure(request(user("x" * 2_000)))

    assert failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
