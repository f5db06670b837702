"""What goes wrong on the way to a provider, through the loop: each ends in an answer or in clear words."""

import asyncio
from dataclasses import replace

import pytest

from everfold.llm.failure import FailureCode
from tests.end_to_end.conftest import Opening
from tests.end_to_end.product import KEY, UNCHECKED, Product, image, run, shown_texts
from tests.end_to_end.standing import Standing
from tests.providers.answers import EMPTY, Answer, Cut, Filler, Refuse, ToolUse, huge
from tests.providers.pictures import img
from tests.providers.refusing import error
from tests.providers.strict_fake import StrictFake

LONG = "abcdefgh" * 8


def attempts(product: Product) -> int:
    """Return how many requests gave no message, by the log."""
    return len(product.data("assistant/attempt"))


def test_a_slow_first_byte_is_given_up_and_asked_again(opened: Opening, fake: StrictFake) -> None:
    product = opened(route={"first_chunk_s": 1.0})
    product.most_calls = 2
    fake.will(Answer(first_byte_s=30))

    result = product.say("hello")

    assert result.kind == "completed"
    (failure,) = product.data("llm/retry")
    assert "FIRST_CHUNK_TIMEOUT" in str(failure)
    assert fake.disconnected.wait(10)


def test_a_pause_amid_an_answer_is_given_up_and_asked_again(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(route={"idle_s": 1.0})
    product.most_calls = 2
    fake.will(Answer(LONG, between_s=30))

    result = product.say("hello")

    assert result.kind == "completed"
    assert result.text == "Seen."
    assert attempts(product) == 1


@pytest.mark.parametrize("filler", ["comment", "empty"])
def test_an_answer_that_goes_on_saying_nothing_is_kept_as_an_attempt_and_asked_again(
    opened: Opening, fake: StrictFake, filler: Filler
) -> None:
    product = opened(route={"content_s": 1.0})
    product.most_calls = 2
    fake.will(Answer(LONG, filler=filler))

    result = product.say("hello")

    assert result.text == "Seen."
    assert "abcd" in str(product.data("assistant/attempt"))
    (retry,) = product.data("llm/retry")
    assert retry["failure"]["code"] == FailureCode.TIMEOUT


@pytest.mark.parametrize("cut", ["mid-frame", "before-finish"])
def test_a_cut_answer_is_kept_as_an_attempt_and_asked_again(
    opened: Opening, fake: StrictFake, cut: Cut
) -> None:
    product = opened()
    product.most_calls = 2
    fake.will(Answer(LONG, cut=cut))

    result = product.say("hello")

    assert result.text == "Seen."
    assert "abcd" in str(product.data("assistant/attempt"))
    assert LONG not in shown_texts(product)


def test_a_malformed_piece_is_asked_again(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 2
    fake.will(Answer(LONG, malformed=True))

    result = product.say("hello")

    assert result.text == "Seen."
    (retry,) = product.data("llm/retry")
    assert retry["failure"]["code"] == FailureCode.MALFORMED_RESPONSE


def test_a_rate_limit_is_waited_for_as_long_as_it_says(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 2
    refused = error("openai", 429, "slow down")
    fake.will(replace(refused, headers={**refused.headers, "retry-after-ms": "40"}))

    result = product.say("hello")

    assert result.kind == "completed"
    (retry,) = product.data("llm/retry")
    assert retry["delayMs"] == 40


def test_a_rate_limit_beyond_our_patience_ends_the_turn_with_advice(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 1
    refused = error("openai", 429, "come back tomorrow")
    fake.will(replace(refused, headers={**refused.headers, "Retry-After": "86400"}))

    result = product.say("hello")

    assert result.failure is not None
    assert result.failure.code == FailureCode.RATE_LIMIT
    assert result.failure.provider_retry_after_ms == 86_400_000
    assert result.advice


def test_a_413_without_any_picture_says_what_to_do(opened: Opening, fake: StrictFake) -> None:
    product = opened(UNCHECKED)
    product.most_calls = 1
    fake.will(Refuse(413, b""))

    result = product.say("hello")

    assert result.failure is not None
    assert result.failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
    assert "compact_now" in str(result.advice)


def test_a_short_storm_of_server_errors_is_survived(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 3
    fake.will(Refuse(500), Refuse(502, b"<html>bad gateway</html>"))

    assert product.say("hello").kind == "completed"
    assert [retry["retry"] for retry in product.data("llm/retry")] == [1, 2]


def test_an_endless_storm_of_server_errors_costs_three_requests_a_message(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 3 + 1
    fake.will(*[Refuse(503, b"overloaded")] * 3)

    result = product.say("hello")

    assert result.failure is not None
    assert result.failure.code == FailureCode.SERVER
    assert "503" in result.failure.message
    assert product.say("and now?").kind == "completed"


@pytest.mark.parametrize("arguments", ['{"at": 1,,', "", "null", "[1]", '"text"', '{"at": "x"}'])
def test_wrong_arguments_are_told_to_the_model_and_sent_back_in_valid_form(
    opened: Opening, fake: StrictFake, arguments: str
) -> None:
    product = opened()
    product.most_calls = 2

    def look(at: int) -> str:
        """Look somewhere."""
        return f"at {at}"

    product.tools = [look]
    wanted = ToolUse("c1", "look", arguments)
    fake.will(Answer("", calls=(wanted,), finish="tool-calls"))

    result = product.say("look")

    assert result.kind == "completed"
    (stored,) = product.data("tool/result")
    assert stored["message"]["content"][0]["isError"] is True


@pytest.mark.parametrize("empty", [EMPTY, Answer(""), Answer(streamed=False)])
def test_an_empty_answer_is_asked_again_and_is_no_message(
    opened: Opening, fake: StrictFake, empty: Answer
) -> None:
    product = opened()
    product.most_calls = 2
    fake.will(empty)

    result = product.say("hello")

    assert result.text == "Seen."
    assert len(product.data("assistant/message")) == 1


def test_nothing_but_empty_answers_ends_with_a_word(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 3
    fake.will(*[EMPTY] * 3)

    result = product.say("hello")

    assert result.failure is not None
    assert result.failure.code == FailureCode.EMPTY_RESPONSE


def test_a_huge_answer_is_kept_up_to_the_limit_and_the_session_goes_on(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    # Where the context window is known, the answer is summarised before the next request.
    product.most_calls = 4
    fake.will(huge(8 * 2**20))

    result = product.say("write a lot")

    assert result.kind == "max-tokens"
    assert 1_400_000 < len(result.text) < 1_700_000
    assert product.say("enough").kind == "completed"


def test_a_refused_key_is_said_once_and_not_shown(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 1
    fake.will(error("openai", 401, f"Incorrect API key provided: {KEY}"))

    result = product.say("hello")

    assert result.failure is not None
    assert result.failure.code == FailureCode.AUTH
    assert KEY not in repr(product.results)


def test_an_error_amid_the_stream_keeps_what_came_as_an_attempt(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2
    detail = {"message": "overloaded", "code": "server_error", "type": "overloaded_error"}
    fake.will(Answer(LONG, error={"type": "error", "error": detail}))

    result = product.say("hello")

    assert result.text == "Seen."
    assert attempts(product) == 1


def test_cancelling_amid_an_answer_keeps_the_prefix_and_hangs_up(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2
    fake.will(Answer(LONG, between_s=0.05))
    agent = product.agent()

    async def cancel_midway() -> str:
        async for item in agent.stream("hello"):
            if "TextDelta" in repr(item):
                agent.cancel()
        await product.host.disconnect()
        return "left"

    run(cancel_midway())

    (answer,) = product.data("assistant/message")
    assert answer["interrupted"] is True
    assert fake.disconnected.wait(10)
    assert product.say("go on").kind == "completed"


def test_a_provider_that_is_not_there_is_named(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = opened(route={"base_url": "http://127.0.0.1:9/v1"})
    product.most_calls = 0
    standing.has_last_message = False

    result = product.say("hello")

    assert result.failure is not None
    assert result.failure.code == FailureCode.TRANSPORT
    assert "127.0.0.1:9" in result.failure.message


def test_every_kind_of_fault_in_one_session_leaves_it_usable(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(route={"first_chunk_s": 1.0, "idle_s": 1.0})
    faults: list[Answer | Refuse] = [
        Answer(first_byte_s=30),
        Answer(LONG, cut="mid-frame"),
        Answer(LONG, malformed=True),
        Refuse(500),
        EMPTY,
        Refuse(413, b""),
        error("openai", 400, "no"),
    ]
    product.most_calls = 3 * len(faults)

    for number, fault in enumerate(faults):
        fake.will(fault)
        # Large enough for pictures to be why a request is too large.
        product.say(f"n{number}", image(img(40_000, shade=number)))
        fake.answers.clear()

    assert product.say("and now?").kind == "completed"
    assert all(text in shown_texts(product) for text in ("n0", "n3", "n6"))


def test_several_sessions_at_once_do_not_mix(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = opened()
    product.most_calls = 8
    names = [product.session_id, *(product.sessions.create().id for _ in range(7))]
    standing.sessions |= set(names)

    async def all_at_once() -> list[str]:
        agents = [product.agent(session_id=name) for name in names]
        results = await asyncio.gather(*(a.ask(f"I am {a.session_id}") for a in agents))
        await product.host.disconnect()
        return [result.kind for result in results]

    assert run(all_at_once()) == ["completed"] * 8
    for call in fake.calls:
        assert call.seen is not None
        assert call.seen.all_text.count("I am ") == 1
