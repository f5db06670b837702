"""`docs/profiles.md` says what is so."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from everfold.agent.settings import Limits
from everfold.llm.retrying import RetryPolicy
from everfold.profiles.adapters import ADAPTERS, check_profile
from everfold.profiles.loading import load_profile, shipped_names
from everfold.profiles.profile import ProfileTable
from everfold.profiles.scripting import ReplyTable, ScriptedSettings
from everfold.routes.anthropic_messages import AnthropicSettings
from everfold.routes.openai_chat import ChatSettings
from everfold.routes.openai_responses import ResponsesSettings

PAGE = (Path(__file__).parent.parent.parent / "docs" / "profiles.md").read_text("utf-8")
NOT_IN_FILES = {"provider", "api_key"}


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_example_is_a_valid_profile(tmp_path: Path) -> None:
    path = tmp_path / "everfold.toml"
    path.write_text(block("toml"), "utf-8")

    profile = load_profile(str(path))

    check_profile(profile)
    assert profile.settings().model.reasoning_effort == "low"
    assert profile.table()["api_key_env"] == "OPENAI_API_KEY"


def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(block("python"), "utf-8")

    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert f"It prints `{done.stdout.strip()}`" in PAGE


@pytest.mark.parametrize("name", [*shipped_names(), *ADAPTERS])
def test_every_shipped_profile_and_adapter_is_listed(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            *ProfileTable.model_fields,
            *ScriptedSettings.model_fields,
            *ReplyTable.model_fields,
            *ChatSettings.model_fields,
            *ResponsesSettings.model_fields,
            *AnthropicSettings.model_fields,
            *(each.name for each in (*fields(RetryPolicy), *fields(Limits))),
        }
        - NOT_IN_FILES
    ),
)
def test_every_key_is_listed(name: str) -> None:
    assert re.search(rf"`{name}(\.NAME)?`|`{name} = ", PAGE)
