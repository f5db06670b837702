"""Field reports, group A, through the whole product: nothing makes a session unusable for ever."""

from dataclasses import replace
from itertools import pairwise

import pytest

from everfold.agent.tools import ImageData, ToolOutput
from everfold.llm.failure import FailureCode
from everfold.llm.images import images
from everfold.projections.compaction.engine import Compacted
from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json
from tests.domain.kit import assistant, text, tool_result
from tests.end_to_end.conftest import Opening
from tests.end_to_end.product import UNCHECKED, Product, image, pictures_sent, shown_texts
from tests.end_to_end.standing import Standing
from tests.field_reports.kit import call
from tests.host.kit import hello
from tests.providers.answers import Answer, ToolUse
from tests.providers.pictures import corrupt, img
from tests.providers.refusing import Rejection, Style, error
from tests.providers.strict_fake import StrictFake

CAP = 5_242_880


def test_a1_an_oversized_picture_of_an_old_row_is_omitted_and_a_new_process_goes_on(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=CAP)
    standing.under_test = {"image"}
    product = opened(UNCHECKED)
    product.most_calls = 3

    first = product.say("look", product.old_picture(img(5_600_000)))
    second = opened(UNCHECKED, session_id=product.session_id).say("thanks")

    assert (first.kind, second.kind) == ("completed", "completed")
    (omission,) = product.data("image/offload")
    assert [target["imageIndexes"] for target in omission["targets"]] == [[0]]
    assert "look" in shown_texts(product)


def test_a1_an_oversized_picture_is_made_smaller_when_it_comes_in(
    opened: Opening, fake: StrictFake
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=CAP)
    product = opened()
    product.most_calls = 2

    first = product.say("look", image(img(5_600_000)))
    second = opened(session_id=product.session_id).say("thanks")

    assert (first.kind, second.kind) == ("completed", "completed")
    assert pictures_sent(product) == 1


def test_a2_more_than_a_hundred_pictures_go_on_and_can_be_summarised(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_images=100)
    standing.under_test = {"count"}
    product = opened(UNCHECKED, plugin={"compaction": {"keep_tokens": 1_000}})
    product.most_calls = 102 + 2 + 1

    kinds = {product.say(f"n{n}", image(img(5_000, shade=n))).kind for n in range(102)}
    outcome = product.compact()

    assert kinds == {"completed"}
    assert isinstance(outcome, Compacted)
    assert fake.last.violation is None
    assert pictures_sent(product) <= 100
    assert product.kept()[-1]


def test_a3_a_limit_that_begins_with_many_pictures_is_recovered_in_four_calls(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rejection = Rejection("R3")
    standing.under_test = {"dims"}
    product = opened(UNCHECKED)
    product.most_calls = 20 + 4
    sizes = [(1170, 2532) if n in (3, 7) else (800, 600) for n in range(1, 22)]
    pictures = [
        product.old_picture(img(width=width, height=height, shade=n))
        for n, (width, height) in enumerate(sizes)
    ]

    kinds = {product.say(f"n{n}", picture).kind for n, picture in enumerate(pictures)}

    assert kinds == {"completed"}
    kept = product.kept()
    assert sum(kept) <= 20 or not (kept[2] or kept[6])
    assert kept[-1]


def look() -> ToolOutput:
    """Give six pictures of 900 kB."""
    return ToolOutput([image(img(900_000, shade=10 + n)) for n in range(6)])


@pytest.mark.parametrize("plain", ["Payload Too Large", ""])
def test_a4_a_413_is_recovered_whatever_its_body_says(
    opened: Opening, fake: StrictFake, standing: Standing, plain: str
) -> None:
    fake.rules = replace(fake.rules, max_body=8 * 2**20)
    fake.rejection = Rejection("R1", plain)
    standing.under_test = {"body"}
    product = opened(UNCHECKED)
    product.tools = [look]
    product.most_calls = 3
    fake.will(Answer("", calls=(ToolUse("c", "look"),), finish="tool-calls"))

    result = product.say("see", *[product.old_picture(img(900_000, shade=n)) for n in range(6)])

    assert result.kind == "completed"
    assert product.kept() == [False] * 6 + [True] * 6


def test_a4_a_413_that_pictures_cannot_cause_takes_none_of_them(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_body=1_000)
    fake.rejection = Rejection("R1", "")
    standing.under_test = {"body"}
    product = opened(UNCHECKED, plugins=["image-offload"])
    product.most_calls = 1 + 1

    refused = product.say("see " * 100_000, *[image(img(9_000, shade=n)) for n in range(6)])
    fake.rules = replace(fake.rules, max_body=None)
    again = product.say("thanks")

    assert refused.failure is not None
    assert refused.failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
    assert again.kind == "completed"
    assert product.kept() == [True] * 6


def test_a4_a_413_to_a_short_body_with_tiny_pictures_has_older_messages_summarised(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rejection = Rejection("R1", "")
    standing.under_test = {"body"}
    product = opened(UNCHECKED)
    for number in range(4):
        product.say("see " * 3_000, image(img(300, shade=number)))
    fake.rules = replace(fake.rules, max_body=45_000)
    product.most_calls = 4 + 1 + 5 + 1

    result = product.say("thanks")

    assert result.kind == "completed"
    types = [event.type for event in product.log()]
    assert types.count("compaction/summary") == 1
    assert "image/offload" not in types


@pytest.mark.parametrize("plain", ["Payload Too Large", ""])
def test_a4_a_summary_right_after_a_413_succeeds(
    opened: Opening, fake: StrictFake, standing: Standing, plain: str
) -> None:
    fake.rejection = Rejection("R1", plain)
    standing.under_test = {"body"}
    limited = opened(UNCHECKED, plugins=[])
    limited.tools = [look]
    fake.will(Answer("", calls=(ToolUse("c", "look"),), finish="tool-calls"))
    limited.say("see " * 1_000, *[limited.old_picture(img(900_000, shade=n)) for n in range(6)])
    fake.rules = replace(fake.rules, max_body=8 * 2**20)
    limited.most_calls = 2 + 1 + 2

    refused = limited.say("go on")
    outcome = opened(UNCHECKED, session_id=limited.session_id).compact()

    assert refused.failure is not None
    assert refused.failure.code == FailureCode.IMAGE_OFFLOAD_REQUIRED
    assert isinstance(outcome, Compacted)


def test_a5_bytes_are_met_while_tokens_are_far_from_the_window(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_body=32_000_000)
    fake.rejection = Rejection("R1")
    standing.under_test = {"body"}
    product = opened({**UNCHECKED, "context_window": 1_000_000})
    product.most_calls = 3 + 1

    kinds = {
        product.say("see", *[image(img(610_000, shade=14 * n + m)) for m in range(14)]).kind
        for n in range(3)
    }

    assert kinds == {"completed"}
    assert product.data("compaction/start") == []


def test_a6_a_refused_body_is_never_sent_again(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=5_000)
    standing.under_test = {"image"}
    product = opened(UNCHECKED)
    product.most_calls = 2 + 1

    product.say(*[product.old_picture(img(9_000, shade=n)) for n in range(3)])
    product.say("still there?")

    bodies = [call.raw for call in fake.calls]
    assert all(one != other for one, other in pairwise(bodies))
    assert [result.kind for result in product.results] == ["completed"] * 2


def test_a6_a_refusal_that_nothing_recovers_is_sent_once_a_message(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2
    fake.will(error("openai", 400, "temperature: must be at most 2"))

    first = product.say("hello", image(img()))
    second = product.say("still there?")

    assert (first.kind, second.kind) == ("error", "completed")
    assert first.advice is not None
    assert "decisions.occurrences" in first.advice


def test_a7_the_true_type_is_sent_for_new_pictures_and_for_old_rows(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2
    wrong = product.old_picture(img(media_type="image/jpeg"), "image/png")
    told: list[str] = []
    product.host.on_notice = lambda _name, notice: told.append(notice.code)

    first = product.say("old", wrong)
    second = product.say("new", image(img(media_type="image/webp"), "a.png", "image/png"))

    assert (first.kind, second.kind) == ("completed", "completed")
    seen = fake.last.seen
    assert seen is not None
    assert [picture.true_type for picture in seen.images] == ["image/jpeg", "image/webp"]
    stored = [block["attachment"]["mediaType"] for block in blocks_of(product)]
    assert stored == ["image/png", "image/webp"]


def blocks_of(product: Product) -> list[Json]:
    """Return the image blocks of the session, oldest first."""
    return [block for message in product.messages() for block in images(message["content"])]


def test_a8_a_vague_refusal_ends_in_an_answer_within_five_calls(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    bad = img(shade=3)
    fake.rules = replace(fake.rules, cannot_decode=frozenset([bad]))
    fake.rejection = Rejection("R4")
    standing.under_test = {"decode"}
    product = opened(UNCHECKED)
    product.most_calls = 5

    result = product.say("see", *[product.old_picture(img(shade=n)) for n in range(9)])

    assert result.kind == "completed"
    assert not product.kept()[3]
    assert product.kept()[-1]


def test_a8_a_corrupt_picture_of_an_old_row_is_never_sent(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 1
    datas = [corrupt(img(900)) if n == 3 else img(shade=n) for n in range(9)]

    result = product.say("see", *[product.old_picture(data) for data in datas])

    assert result.kind == "completed"
    assert product.kept() == [False] * 4 + [True] * 5


@pytest.mark.parametrize(("sixth", "shown"), [(img(width=9000, height=200), 6), (b"no", 5)])
def test_a9_one_bad_picture_of_six_calls_spoils_nothing_else(
    opened: Opening, fake: StrictFake, sixth: bytes, shown: int
) -> None:
    product = opened()
    product.most_calls = 2

    def watch(number: int) -> ImageData:
        """Look at a picture."""
        return image(sixth if number == 5 else img(30_000, shade=number))

    product.tools = [watch]
    wanted = tuple(ToolUse(f"c{n}", "watch", f'{{"number": {n}}}') for n in range(6))
    fake.will(Answer("", calls=wanted, finish="tool-calls"))

    result = product.say("look at all")

    assert result.kind == "completed"
    assert pictures_sent(product) == shown
    results = [data["message"]["content"][0] for data in product.data("tool/result")]
    results.sort(key=lambda block: str(block["toolCallId"]))
    assert [bool(block.get("isError")) for block in results] == [False] * 5 + [shown == 5]


def test_a10_empty_texts_in_old_rows_are_accepted_and_stay_as_they_are(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(tools=["tests.end_to_end.test_a:silent"])
    product.most_calls = 2
    where = {"turn": 1, "step": 1}
    product.append(
        AppendEvent("turn/start", {"turn": 1}),
        hello("u-1", text("hi")),
        message("assistant/message", {**assistant("a-1", text("")), **where}),
        hello("u-2", text("   ")),
        message(
            "assistant/message",
            {**assistant("a-2", {"type": "reasoning", "text": "only this"}), **where},
        ),
        hello("u-3", text("and")),
        message("assistant/message", {**assistant("a-3", call("c1")), **where}),
        message("tool/result", tool_result("c1", text(""))),
        AppendEvent("turn/end", {"turn": 1, "reason": {"kind": "completed"}}),
    )
    fake.will(Answer("", calls=(ToolUse("c2", "silent"),), finish="tool-calls"))

    result = product.say("go on")

    assert result.kind == "completed"
    assert "(blank message)" in shown_texts(product)
    assert shown_texts(product).count("(no output)") == 2


def silent() -> str:
    """Say nothing."""
    return ""


@pytest.mark.parametrize("style", ["R6", "R5"])
def test_a11_a_limit_that_is_never_said_costs_two_unchanged_retries(
    opened: Opening, fake: StrictFake, standing: Standing, style: Style
) -> None:
    fake.rules = replace(fake.rules, max_body=2_000_000)
    fake.rejection = Rejection(style)
    standing.under_test = {"body"}
    product = opened({**UNCHECKED, "silent_failure_bytes": 1_600_000})
    product.most_calls = 4

    result = product.say("see", *[image(img(300_000, shade=n)) for n in range(6)])

    bodies = [request.raw for request in fake.calls]
    assert result.kind == "completed"
    assert bodies[:3] == [bodies[0]] * 3
    assert sum(product.kept()) == 3
    assert len(product.data("assistant/message")) == 1
    assert len(product.data("llm/retry")) == 2
