"""Thinking blocks: sent back unchanged with their proofs, or not at all (M1)."""

from dataclasses import replace
from typing import Any

import pytest

from everfold.attachments.versions import RequestVersions
from everfold.llm.assembly import Assembler
from everfold.llm.failure import FailureCode
from tests.providers.answers import Answer, ToolUse
from tests.providers.refusing import error
from tests.providers.rules import STRICT
from tests.providers.seen import SeenThought
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import claude, events
from tests.routes.kit import LOOK, Json, assistant, call, request, result, user
from tests.routes.talk import Talk, Talking

SIGNATURE = "c2lnbmVkIGJ5IHRoZSBwcm92aWRlcg=="
BUDGET = {"model": "claude-sonnet-4-5", "reasoningEffort": "low"}
THOUGHT = Answer("so", reasoning="h\u00e4mm \U0001f914", signature=SIGNATURE, piece=3)


@pytest.fixture
def talk(fake: StrictFake, versions: RequestVersions, talking: Talking) -> Talk:
    fake.rules = replace(STRICT, signatures=frozenset([SIGNATURE]))
    return claude(fake, versions, talking)


def spoken(talk: Talk, fake: StrictFake, answer: Any, model: str = "m") -> Json:
    """Return the message that a log holds after an answer."""
    fake.will(answer)
    assembler = Assembler()
    for chunk in talk.ask(request(user("hi"), model=model, tools=[LOOK])):
        assembler.add(chunk, 0)
    content, state = assembler.answer().content, assembler.answer().replay_state
    message = assistant(*content, model=model)
    if state is not None:
        message["source"]["replayState"] = dict(state)
    return message


def thoughts(fake: StrictFake) -> list[SeenThought]:
    assert fake.last.seen is not None
    return fake.last.seen.thoughts


def cut_short(message: Json, **fields: str) -> Json:
    """Return a message in whose replay state the first block has other fields."""
    state = message["source"]["replayState"]
    first, *rest = state["blocks"]
    changed = {**state, "blocks": [{**first, **fields}, *rest]}
    return {**message, "source": {**message["source"], "replayState": changed}}


def test_signed_thinking_goes_back_byte_for_byte_m1(fake: StrictFake, talk: Talk) -> None:
    message = spoken(talk, fake, THOUGHT)

    talk.ask(request(user("hi"), message, user("and?")))

    assert thoughts(fake) == [SeenThought(THOUGHT.reasoning, SIGNATURE, "messages.1.content.0")]
    assert fake.last.body["messages"][1]["content"][0] == {  # type: ignore[index]  # the body is any JSON
        "type": "thinking",
        "thinking": THOUGHT.reasoning,
        "signature": SIGNATURE,
    }


@pytest.mark.parametrize(
    "fields",
    [{"signature": ""}, {"signature": SIGNATURE[:16]}, {"digest": "0"}, {"type": "other"}],
)
def test_thinking_with_a_damaged_proof_is_left_out_m1(
    fake: StrictFake, talk: Talk, fields: dict[str, str]
) -> None:
    message = cut_short(spoken(talk, fake, THOUGHT), **fields)

    talk.ask(request(user("hi"), message, user("and?")))

    assert thoughts(fake) == []
    assert fake.last.seen is not None
    assert [seen.text for seen in fake.last.seen.texts] == ["hi", "so", "and?"]


def test_thinking_whose_text_was_cut_is_left_out_m1(fake: StrictFake, talk: Talk) -> None:
    message = spoken(talk, fake, THOUGHT)
    first, *rest = message["content"]
    cut = {**message, "content": [{**first, "text": first["text"][:2]}, *rest]}

    talk.ask(request(user("hi"), cut, user("and?")))

    assert thoughts(fake) == []


def test_one_damaged_block_among_many_costs_no_other_m1(fake: StrictFake, talk: Talk) -> None:
    whole = spoken(talk, fake, THOUGHT)
    history = [user("hi"), *[message for _ in range(36) for message in (whole, user("on"))]]

    talk.ask(request(*history, cut_short(whole, signature=SIGNATURE[:9]), user("and?")))

    assert len(thoughts(fake)) == 36


@pytest.mark.parametrize("switch", [{"model": "other"}, {"provider": "q"}])
def test_another_model_is_not_sent_the_thinking_m1(
    fake: StrictFake, talk: Talk, switch: dict[str, str]
) -> None:
    message = spoken(talk, fake, THOUGHT)
    message["source"] |= switch

    talk.ask(request(user("hi"), message, user("and?")))

    assert thoughts(fake) == []


def test_thinking_comes_back_with_its_own_model_k6(fake: StrictFake, talk: Talk) -> None:
    message = spoken(talk, fake, THOUGHT)

    talk.ask(request(user("hi"), message, user("and?"), model="other"))
    talk.ask(request(user("hi"), message, user("and?")))

    assert len(thoughts(fake)) == 1


@pytest.mark.parametrize(
    "state",
    [[], {"response": []}, {"response": {"format": "x"}, "blocks": [{}]}, {"blocks": 3}],
)
def test_a_replay_state_of_another_form_is_left_out(
    fake: StrictFake, talk: Talk, state: Any
) -> None:
    message = assistant({"type": "reasoning", "text": "hm"}, "so", replay_state=state)

    talk.ask(request(user("hi"), message, user("and?")))

    assert thoughts(fake) == []


def test_thinking_without_a_signature_is_not_kept(fake: StrictFake, talk: Talk) -> None:
    message = spoken(talk, fake, replace(THOUGHT, signature=""))

    assert "replayState" not in message["source"]


def test_thinking_that_is_not_shown_goes_back_as_it_came(fake: StrictFake, talk: Talk) -> None:
    hidden = {"type": "thinking", "thinking": "", "signature": SIGNATURE}
    redacted = {"type": "redacted_thinking", "data": SIGNATURE}
    started = [
        {"type": "content_block_start", "index": at, "content_block": block}
        for at, block in enumerate((hidden, redacted, {"type": "text", "text": "so"}))
    ]
    stops = [{"type": "content_block_stop", "index": at} for at in range(3)]
    frames = [frame for pair in zip(started, stops, strict=True) for frame in pair]
    message = spoken(talk, fake, events(*frames, {"type": "message_stop"}))

    talk.ask(request(user("hi"), message, user("and?")))

    content = fake.last.body["messages"][1]["content"]  # type: ignore[index]  # the body is any JSON
    assert content == [hidden, redacted, {"type": "text", "text": "so"}]


def test_thinking_goes_on_amid_tool_calls(fake: StrictFake, talk: Talk) -> None:
    answer = replace(THOUGHT, text="", calls=(ToolUse("c1", "look"),), finish="tool-calls")
    message = spoken(talk, fake, answer, BUDGET["model"])

    talk.ask(request(user("hi"), message, result("c1", "a boat"), tools=[LOOK], **BUDGET))

    assert len(thoughts(fake)) == 1
    assert "thinking" in fake.last.body


def test_a_model_that_takes_over_amid_tool_calls_is_not_asked_to_think(
    fake: StrictFake, talk: Talk
) -> None:
    history = (user("hi"), assistant(call("c1"), provider="q"), result("c1", "a boat"))

    talk.ask(request(*history, tools=[LOOK], **BUDGET))
    assert "thinking" not in fake.last.body

    talk.ask(request(*history, assistant("a boat"), user("and?"), tools=[LOOK], **BUDGET))
    assert "thinking" in fake.last.body


def test_a_refused_proof_names_the_way_out_m1(fake: StrictFake, talk: Talk) -> None:
    said = "messages.1.content.0: Invalid `signature` in `thinking` block"
    fake.will(error("anthropic", 400, said))

    failure = talk.failure(request(user("hi")))

    assert failure.code == FailureCode.INVALID_REQUEST
    assert "replays_thinking = false" in failure.message


def test_a_session_goes_on_without_its_thinking_m1(
    fake: StrictFake, talk: Talk, versions: RequestVersions, talking: Talking
) -> None:
    message = spoken(talk, fake, THOUGHT)
    fake.rules = replace(STRICT, signatures=frozenset())

    claude(fake, versions, talking, replays_thinking=False).ask(
        request(user("hi"), message, user("and?"))
    )

    assert fake.last.violation is None
