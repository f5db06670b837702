"""Requests in a file of a recording: what an earlier one of them holds is not written again.

A request holds the whole conversation up to it, twice: as the log gave it, and as it was sent. So an
exchange's line may name an earlier exchange that it is `like`; in its lists, the elements that stand
in the same list of that one are then written as `{"{{same}}": [first, last]}`, both included. A line
without `like` holds everything itself.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from everfold.session.frozen import Json

SAME = "{{same}}"
_LOOKS_BACK = 4
"""So many exchanges are compared with: between two steps of a turn there may be summaries, and retries."""

Lists = dict[str, list[Json]]


def lists_of(line: Mapping[str, Any]) -> Lists:
    """Return the lists of an exchange's line that are shared: its messages, and those of its body."""
    body = line.get("body")
    members = body.items() if isinstance(body, Mapping) else ()
    found = {f"body.{name}": value for name, value in members if isinstance(value, list)}
    return {"messages": line["request"]["messages"], **found}


def with_lists(line: Mapping[str, Any], lists: Lists) -> dict[str, Json]:
    """Return a line with other lists in the places of its own."""
    changed = {**line, "request": {**line["request"], "messages": lists["messages"]}}
    members = {
        name.removeprefix("body."): each for name, each in lists.items() if name != "messages"
    }
    if members:
        changed["body"] = {**line["body"], **members}
    return changed


@dataclass(slots=True)
class SharingWriter:
    """Shortens the lines of a recording's exchanges, one after another."""

    _numbers: dict[bytes, int] = field(default_factory=dict)
    _by_identity: dict[int, int] = field(default_factory=dict)
    _recent: deque[tuple[int, dict[str, list[int]]]] = field(
        default_factory=lambda: deque(maxlen=_LOOKS_BACK)
    )
    _count: int = 0

    def shortened(self, line: dict[str, Json]) -> dict[str, Json]:
        """Return the line to write; the elements of its lists must live as long as this writer."""
        lists = lists_of(line)
        numbers = {name: [self._number(each) for each in values] for name, values in lists.items()}
        base = max(self._recent, key=lambda known: _common(known[1], numbers), default=None)
        self._recent.append((self._count, numbers))
        self._count += 1
        if base is None or not _common(base[1], numbers) or any(map(_holds_mark, lists.values())):
            return line
        short = {
            name: _written(values, numbers[name], base[1].get(name, []))
            for name, values in lists.items()
        }
        return {**with_lists(line, short), "like": base[0]}

    def _number(self, value: Json) -> int:
        """Return the number of a value; values with the same JSON have the same."""
        number = self._by_identity.get(id(value))
        if number is None:
            number = self._numbers.setdefault(orjson.dumps(value), len(self._numbers))
            self._by_identity[id(value)] = number
        return number


def _common(base: Mapping[str, Sequence[int]], numbers: Mapping[str, Sequence[int]]) -> int:
    return sum(len({*numbers[name]}.intersection(base.get(name, ()))) for name in numbers)


def _holds_mark(values: Sequence[Json]) -> bool:
    """Tell whether a list holds what would be read as a reference."""
    return any(isinstance(each, Mapping) and SAME in each for each in values)


def _written(values: Sequence[Json], numbers: Sequence[int], base: Sequence[int]) -> list[Json]:
    places = {number: place for place, number in enumerate(base)}
    written: list[Json] = []
    run: list[int] = []
    for value, number in zip(values, numbers, strict=True):
        follows = run[1] + 1 if run else len(base)
        if follows < len(base) and base[follows] == number:
            run[1] = follows
            continue
        place = places.get(number)
        run = [] if place is None else [place, place]
        written.append({SAME: run} if run else value)
    return written


def whole(line: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return a line as it was before it was shortened.

    Args:
        earlier: the whole lines of the exchanges before it.

    Raises:
        ValueError: it refers to what is not there.
    """
    if "like" not in line:
        return line
    place = line["like"]
    if type(place) is not int or not 0 <= place < len(earlier):
        raise ValueError(f"it is like exchange {place!r}, and there are {len(earlier)} before it")
    base = lists_of(earlier[place])
    lists = {
        name: [each for item in items for each in _read(item, base.get(name, []))]
        for name, items in lists_of(line).items()
    }
    return with_lists(line, lists)


def _read(item: Json, base: Sequence[Json]) -> Sequence[Json]:
    if not isinstance(item, Mapping) or SAME not in item:
        return (item,)
    match item[SAME]:
        case [int(first), int(last)] if 0 <= first <= last < len(base):
            return base[first : last + 1]
        case span:
            raise ValueError(f"{span!r} are no places in a list of {len(base)}")
