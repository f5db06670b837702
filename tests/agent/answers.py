"""The answer that a tool's call gets in the log."""

from collections.abc import Mapping
from typing import Any

from everfold.agent.tools import Tool, tool
from everfold.routes.scripted import calls, says
from everfold.session.frozen import Json
from tests.agent.kit import Host, admits, run, unanswered


def answered(host: Host, function: Any, arguments: Mapping[str, Json] | str = "{}") -> Json:
    """Return the data of the result that one call of a tool got."""
    made = function if isinstance(function, Tool) else tool(function)
    agent = host.agent(
        host.route(calls(("c", made.name, arguments)), says("ok")), tools=[made], admit=admits
    )
    assert run(agent.ask("go")).text == "ok"
    events = host.log(agent.session_id)
    assert unanswered(events) == {}
    return next(event.data for event in events if event.type == "tool/result")


def block(data: Json) -> Json:
    return data["message"]["content"][0]


def text(data: Json) -> str:
    return str(block(data)["content"][0]["text"])
