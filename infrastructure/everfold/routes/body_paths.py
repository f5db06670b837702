"""Finds the pictures that a provider names: by a path in the body, an index, or the id of a file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PATH = re.compile(r"\b(messages|input)((?:(?:\.|\[)['\"]?[A-Za-z0-9_]+['\"]?\]?)+)")
_STEP = re.compile(r"[A-Za-z0-9_]+")
_INDEX = re.compile(r"\bimages?(?:_urls?)?(?:\[| at index | index | at position )(\d{1,4})\b")

Block = Mapping[str, Any] | None


def images_named(text: str, body: Mapping[str, Any], blocks: Sequence[Block]) -> list[int]:
    """Return the places in `blocks` of the pictures that `text` names; empty if it names none.

    A path that ends in a message or a tool result names every picture in it. An index counts the
    pictures of the request from 0.

    Args:
        blocks: objects inside `body`, one for each picture, in their order.
    """
    for visited in _paths(text, body):
        for value in reversed(visited[1:]):
            found = [place for place, block in enumerate(blocks) if _holds(value, block)]
            if found:
                return found
    return _by_file(text, blocks) or _by_index(text, len(blocks))


def image_pointed_at(text: str, body: Mapping[str, Any], blocks: Sequence[Block]) -> int | None:
    """Return the place of the picture to which a path in `text` leads; None if it leads to none."""
    for visited in _paths(text, body):
        for place, block in enumerate(blocks):
            if block is not None and any(value is block for value in visited):
                return place
    return None


def _paths(text: str, body: Mapping[str, Any]) -> Iterator[list[Any]]:
    for match in _PATH.finditer(text):
        yield list(_visited(body, match.group(1), _STEP.findall(match.group(2))))


def _by_file(text: str, blocks: Sequence[Block]) -> list[int]:
    ids = [str(block["file_id"]) if block and "file_id" in block else "" for block in blocks]
    return [place for place, id_ in enumerate(ids) if id_ and id_ in text]


def _by_index(text: str, count: int) -> list[int]:
    match = _INDEX.search(text.lower())
    at = count if match is None else int(match.group(1))
    return [at] if at < count else []


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


def _holds(value: object, block: Block) -> bool:
    if block is None:
        return False
    if value is block:
        return True
    if isinstance(value, Mapping):
        return any(_holds(inner, block) for inner in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(_holds(inner, block) for inner in value)
    return False
