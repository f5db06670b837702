"""Finds the pictures that a provider names by their path in the body, as in `messages.3.content.1`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PATH = re.compile(r"\b(messages|input)((?:(?:\.|\[)['\"]?[A-Za-z0-9_]+['\"]?\]?)+)")
_STEP = re.compile(r"[A-Za-z0-9_]+")


def images_named(text: str, body: Mapping[str, Any], blocks: Sequence[object | None]) -> list[int]:
    """Return the places in `blocks` of the pictures that `text` names; empty if it names none.

    A path that ends in a message or a tool result names every picture in it.

    Args:
        blocks: objects inside `body`, one for each picture.
    """
    for match in _PATH.finditer(text):
        steps = _STEP.findall(match.group(2))
        visited = list(_visited(body, match.group(1), steps))
        for value in reversed(visited[1:]):
            found = [place for place, block in enumerate(blocks) if _holds(value, block)]
            if found:
                return found
    return []


def _visited(body: Mapping[str, Any], root: str, steps: Sequence[str]) -> Iterator[Any]:
    """Yield the values on a path; words that are no keys, as types in Anthropic's paths, are skipped."""
    value = body.get(root)
    for step in steps:
        yield value
        if isinstance(value, Mapping):
            value = value.get(step, value)
        elif isinstance(value, Sequence) and not isinstance(value, str) and step.isdecimal():
            at = int(step)
            if at >= len(value):
                return
            value = value[at]
        if isinstance(value, str):
            return
    yield value


def _holds(value: object, block: object | None) -> bool:
    if block is None:
        return False
    if value is block:
        return True
    if isinstance(value, Mapping):
        return any(_holds(inner, block) for inner in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(_holds(inner, block) for inner in value)
    return False
