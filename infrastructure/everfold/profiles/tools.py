"""The tools that a profile names: functions of installed modules, or of modules beside the profile."""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

from everfold.agent.tools import Tool, tool
from everfold.profiles.errors import ProfileError


def tools_of(names: Iterable[str], where: str, folder: Path | None = None) -> list[Tool]:
    """Return the tools that `module:name` texts stand for; a name may stand for a list of them.

    Args:
        folder: where modules are looked for that are not installed; it stays on Python's path then.

    Raises:
        ProfileError: one is not there, or is no function.
        ToolDefinitionError: one cannot be offered to a model.
    """
    return [made for name in names for made in _tools(name, where, folder)]


def _tools(name: str, where: str, folder: Path | None) -> list[Tool]:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ProfileError(f"{where}, tools: {name!r} is not of the form module:function")
    try:
        found = getattr(_module(module_name, folder), attribute)
    except Exception as error:
        # Importing a stranger's module may raise anything.
        raise ProfileError(
            f"{where}, tools: {name!r} cannot be loaded: {type(error).__name__}: {error}"
            f"{_hint(error, module_name, folder)}"
        ) from error
    several = found if isinstance(found, (list, tuple)) else [found]
    return [_tool(each, name, where) for each in several]


def _module(name: str, folder: Path | None) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not _is_about(error, name) or folder is None or str(folder) in sys.path:
            raise
    # Last, so that nothing beside a profile takes the place of what is installed.
    sys.path.append(str(folder))
    invalidate_caches()
    return import_module(name)


def _is_about(error: ModuleNotFoundError, name: str) -> bool:
    """Tell whether a module is not there itself, and not one that it imports."""
    return error.name == name.partition(".")[0]


def _hint(error: Exception, name: str, folder: Path | None) -> str:
    if not isinstance(error, ModuleNotFoundError) or not _is_about(error, name):
        return ""
    place = "" if folder is None else f", put it into {str(folder)!r}"
    return f"; install it{place}, or name its folder in PYTHONPATH"


def _tool(found: Any, name: str, where: str) -> Tool:
    if isinstance(found, Tool):
        return found
    if not callable(found):
        raise ProfileError(f"{where}, tools: {name!r} is {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return tool(function)
