"""What routes take: data, and settings over it."""

import pytest

from everfold.llm.budgets import ImageBudget
from everfold.routes.limits import Limits, LimitsError, route_names

MIB = 2**20


@pytest.mark.parametrize("route", route_names())
def test_every_route_of_the_data_is_valid(route: str) -> None:
    assert Limits(route).of("some-model").tool_ids.max_length >= 8


def test_file_mode_has_the_budget_of_the_main_route() -> None:
    files = Limits("openai-responses").of("gpt-5").files

    assert files is not None
    assert files.budget() == ImageBudget("raw", 128 * MIB, 600, 64 * MIB, 20)


def test_inline_mode_has_the_tighter_budget() -> None:
    inline = Limits("openai-responses").of("gpt-5").inline

    assert inline.budget() == ImageBudget("base64", 20 * MIB, 600, 10 * MIB, 20)


def test_a_model_entry_is_laid_over_its_route() -> None:
    limits = Limits("openai-chat")

    assert limits.of("gpt-4o-mini").context_window == 128_000
    assert limits.of("gpt-4o-mini").max_body_bytes == limits.of("other").max_body_bytes
    assert limits.of("other").context_window is None


def test_a_route_that_is_like_another_has_its_models_too() -> None:
    limits = Limits("openai-responses")

    assert limits.of("gpt-5-mini").context_window == 400_000
    assert limits.of("gpt-3.5-turbo").is_text_only
    assert limits.of("gpt-5-mini").images.tool


def test_settings_are_laid_over_the_data() -> None:
    limits = Limits("openrouter", {"inline": {"max_images": 50}, "context_window": 9}).of("m")

    assert (limits.inline.max_images, limits.inline.max_bytes) == (50, 20 * MIB)
    assert limits.context_window == 9


def test_settings_may_name_models() -> None:
    limits = Limits("vllm", {"models": [{"match": "qwen*", "images": {"user": False}}]})

    assert limits.of("qwen3").is_text_only
    assert not limits.of("qwen3-vl".replace("qwen", "glm")).is_text_only


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_imagse": 3}, "max_imagse"),
        ({"inline": {"max_pictures": 3}}, "inline.max_pictures"),
        ({"models": [{"match": "q*", "windows": 3}]}, "windows"),
        ({"models": [{"context_window": 3}]}, "'match'"),
        ({"context_window": 0}, "context_window"),
    ],
)
def test_an_unknown_or_senseless_key_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(LimitsError, match=said):
        Limits("vllm", settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"inline": {"max_bytes": 5, "byte_quantum": 6}},
        {"inline": {"max_images": 5, "count_quantum": 6}},
        {"max_body_bytes": 5, "body_quantum": 6},
    ],
)
def test_a_quantum_over_its_limit_is_refused_r250(settings: dict[str, object]) -> None:
    with pytest.raises(LimitsError, match=r"quantum 6 exceeds max_\w+ 5"):
        Limits("vllm", settings)


def test_an_unknown_route_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LimitsError, match=r"'acme'.*'vllm'"):
        Limits("acme")
