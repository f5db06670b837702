"""The tools that a profile names: functions of installed modules."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from everfold.agent.tools import Tool, tool
from everfold.profiles.errors import ProfileError


def tools_of(names: Iterable[str], where: str) -> list[Tool]:
    """Return the tools that `module:name` texts stand for; a name may stand for a list of them.

    Raises:
        ProfileError: one is not there, or is no function.
        ToolDefinitionError: one cannot be offered to a model.
    """
    return [made for name in names for made in _tools(name, where)]


def _tools(name: str, where: str) -> list[Tool]:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ProfileError(f"{where}, tools: {name!r} is not of the form module:function")
    try:
        found = getattr(import_module(module_name), attribute)
    except Exception as error:
        # Importing a stranger's module may raise anything.
        raise ProfileError(
            f"{where}, tools: {name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    several = found if isinstance(found, (list, tuple)) else [found]
    return [_tool(each, name, where) for each in several]


def _tool(found: Any, name: str, where: str) -> Tool:
    if isinstance(found, Tool):
        return found
    if not callable(found):
        raise ProfileError(f"{where}, tools: {name!r} is {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return tool(function)
