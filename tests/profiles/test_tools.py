"""Tools that a profile names."""

from pathlib import Path

import pytest

from everfold.agent.errors import AgentError
from everfold.profiles.errors import ProfileError
from everfold.profiles.opening import open_profile
from tests.profiles.test_opening import ask, profile


@pytest.fixture
def _tool_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "def tide(port: str) -> str:\n    '''Say when.'''\n    return f'14:20 at {port}'\n"
        "both = [tide]\nnumber = 3\n"
    )
    (tmp_path / "harbour_tools.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_tool_module")
@pytest.mark.parametrize("name", ["harbour_tools:tide", "harbour_tools:both"])
def test_a_named_function_is_a_tool(name: str) -> None:
    call = {"id": "c1", "name": "tide", "arguments": {"port": "Ystad"}}
    route = {"replies": [{"calls": [call]}, {"text": "ok"}]}

    with open_profile(profile(route=route, tools=[name])) as host:
        result = ask(host)
        results = [
            event.data["message"]["content"][0]["content"]
            for event in host.sessions.log(result.session_id)
            if event.type == "tool/result"
        ]

    assert results == [[{"type": "text", "text": "14:20 at Ystad"}]]


@pytest.mark.usefixtures("_tool_module")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("harbour_tools", "is not of the form module:function"),
        ("harbour_tools:nope", "cannot be loaded: AttributeError"),
        ("nowhere_at_all:x", "cannot be loaded: ModuleNotFoundError"),
        ("harbour_tools:number", "is int, not a function"),
    ],
)
def test_a_tool_that_is_not_there_is_named(name: str, reason: str) -> None:
    with (
        open_profile(profile(tools=[name])) as host,
        pytest.raises((ProfileError, AgentError), match=reason),
    ):
        host.agent("x")
