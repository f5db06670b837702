"""The standing checks find what they are there for."""

import json
from typing import Any

import pytest

from everfold.llm.failure import FailureCode, LlmFailure
from tests.end_to_end.conftest import Opening
from tests.end_to_end.standing import Standing, broken_rules, check_outcome
from tests.providers.reading import read_chat
from tests.providers.rules import Rules
from tests.providers.strict_fake import Call, StrictFake


def request(*messages: Any) -> Call:
    """Return a chat request as a provider got it."""
    body = {"model": "m", "messages": list(messages)}
    raw = json.dumps(body).encode()
    return Call("/v1/chat/completions", {}, raw, read_chat(body))


def test_s3_every_broken_rule_of_a_body_is_found(fake: StrictFake) -> None:
    orphan = {"role": "tool", "tool_call_id": "c", "content": " "}

    found = {fault.kind for fault in broken_rules(request(orphan), fake)}

    assert found == {"empty", "pairing"}


def test_s3_a_sound_body_breaks_none(fake: StrictFake) -> None:
    assert broken_rules(request({"role": "user", "content": "hi"}), fake) == []


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("open", None),
        ("dropped", None),
        ("error", None),
        ("error", LlmFailure(" ", FailureCode.SERVER)),
        ("error", LlmFailure("it broke", FailureCode.UNKNOWN)),
    ],
)
def test_s6_a_silent_stop_is_found(kind: str, failure: LlmFailure | None) -> None:
    with pytest.raises(AssertionError, match="S6"):
        check_outcome(kind, failure)


@pytest.mark.parametrize("bound", [None, 0])
def test_s4_a_test_without_a_bound_or_beyond_it_is_found(
    opened: Opening, standing: Standing, bound: int | None
) -> None:
    product = opened()
    product.say("hello")
    product.most_calls = bound

    with pytest.raises(AssertionError, match="S4"):
        standing.check_product(product)

    product.most_calls = 1


def test_s7_an_unusable_session_is_found(
    opened: Opening, standing: Standing, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2
    product.say("hello")
    usable, fake.rules = fake.rules, Rules(max_chars=1)

    with pytest.raises(AssertionError, match="S7"):
        standing.check_last_message()

    fake.rules = usable
    standing.under_test = {"window"}
