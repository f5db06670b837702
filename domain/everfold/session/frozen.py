"""JSON values that nobody can change: what the log hands out is shared, so it is frozen."""

from typing import Any, NoReturn

Json = Any
"""A JSON value: dict, list, str, int, float, bool or None."""


def _refuse(*_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError("this value comes from the log and cannot be changed; copy it first")


class FrozenDict(dict[str, Json]):
    """A JSON object that refuses change; equal to a plain dict, `copy()` gives one."""

    __slots__ = ("__weakref__",)

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (dict(self),))

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, _memo: object) -> "FrozenDict":
        return self


class FrozenList(list[Json]):
    """A JSON array that refuses change; equal to a plain list, `copy()` gives one."""

    __slots__ = ("__weakref__",)

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (list(self),))

    def __copy__(self) -> "FrozenList":
        return self

    def __deepcopy__(self, _memo: object) -> "FrozenList":
        return self


_DONE = frozenset((str, int, float, bool, type(None), FrozenDict, FrozenList))


def freeze(value: Json) -> Json:
    """Return `value` with every dict and list in it frozen; parts already frozen are kept as they are."""
    if type(value) in _DONE:
        return value
    if isinstance(value, dict):
        return FrozenDict(
            {key: item if type(item) in _DONE else freeze(item) for key, item in value.items()}
        )
    if isinstance(value, list):
        return FrozenList([item if type(item) in _DONE else freeze(item) for item in value])
    return value


def thaw(value: Json) -> Json:
    """Return a deep copy made of plain dicts and lists."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def json_equal(left: Json, right: Json) -> bool:
    """Tell whether two JSON values are the same: key order is free, `true` is not `1` (R65)."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(json_equal(item, right[key]) for key, item in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(map(json_equal, left, right))
        )
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)
