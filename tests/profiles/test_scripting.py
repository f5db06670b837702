"""Scripted models as profiles describe them."""

import asyncio
from typing import Any

import pytest

from everfold.agent.results import TurnResult
from everfold.profiles.opening import OpenProfile, open_profile
from everfold.profiles.profile import profile_of


def asked(
    route: dict[str, Any], *prompts: str, session: list[str] | None = None
) -> list[TurnResult]:
    table = {
        "retry": {"base_ms": 1, "cap_ms": 2},
        "routes": {"scripted": {"adapter": "scripted", "model": "m", **route}},
    }

    async def ask(host: OpenProfile) -> list[TurnResult]:
        agent = host.agent(host.sessions.create().id)
        results = [await agent.ask(prompt) for prompt in prompts]
        if session is not None:
            session.extend(event.type for event in host.sessions.log(agent.session_id))
        return results

    with open_profile(profile_of(table, "mine", None)) as host:
        return asyncio.run(asyncio.wait_for(ask(host), 60))


def test_replies_come_in_order_and_then_the_model_echoes() -> None:
    results = asked({"replies": [{"text": "one"}, {}, {"text": "three"}]}, "a", "b", "c", "d")

    assert [each.text for each in results] == [
        "one",
        "You said 'b'; I see 0 image(s).",
        "three",
        "You said 'd'; I see 0 image(s).",
    ]


def test_a_reply_may_fail_and_be_asked_for_again() -> None:
    types: list[str] = []
    failing = {"fails": "SERVER", "message": "busy", "retry_after_ms": 1}

    results = asked({"replies": [failing, {"text": "now"}]}, "a", session=types)

    assert results[0].text == "now"
    assert types.count("llm/retry") == 1


def test_a_reply_may_fail_for_good() -> None:
    result = asked({"replies": [{"fails": "AUTH", "message": "no"}]}, "a")[0]

    assert result.failure is not None
    assert (result.failure.code, result.failure.message) == ("AUTH", "no")


def test_a_reply_may_be_cut_off() -> None:
    result = asked({"replies": [{"text": "half", "finish": "max-tokens"}]}, "a")[0]

    assert (result.kind, result.text) == ("max-tokens", "half")


def test_a_budget_is_counted_like_that_of_a_real_route() -> None:
    route = {"budget": {"max_images": 0}, "context_window": 900, "takes_images": False}
    table = {"routes": {"s": {"adapter": "scripted", "model": "m", **route}}}

    with open_profile(profile_of(table, "mine", None)) as host:
        takes = host.route().capabilities("m")

    assert takes.budget is not None
    assert (takes.budget.max_images, takes.context_window, takes.user_images) == (0, 900, False)


@pytest.mark.parametrize("pieces", [1, 3, 100])
def test_any_number_of_pieces_is_the_same_text(pieces: int) -> None:
    result = asked({"replies": [{"text": "naïve Ω 漢字", "pieces": pieces}]}, "a")[0]

    assert result.text == "naïve Ω 漢字"
