"""Token counts as providers report them: what is no count is left out, and never costs an answer."""

from collections.abc import Mapping
from typing import Any

from everfold.llm.chunks import Usage

_MOST = 2**53 - 1


def usage_of(
    reported: object,
    names: tuple[str, str],
    total: int | None = None,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage | None:
    """Return the counts under two names, tokens taken and given, with others that are known already.

    Returns:
        None if one of the two is missing or no count.
    """
    taken, given = (count(reported, name) for name in names)
    if taken is None or given is None:
        return None
    return Usage(taken, given, total, cache_read, cache_write, reasoning)


def count(reported: object, *path: str) -> int | None:
    """Return the count at a path of names, None if there is none."""
    value: Any = reported
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if type(value) is int and 0 <= value <= _MOST else None
