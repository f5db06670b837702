"""The first place where two JSON values differ."""

from collections.abc import Mapping, Sequence

from everfold.session.frozen import Json, json_equal

_SHOWN = 120


def first_difference(recorded: Json, played: Json, path: str) -> str | None:
    """Return where two values differ first and in what, None if they are equal."""
    if json_equal(recorded, played):
        return None
    if isinstance(recorded, Mapping) and isinstance(played, Mapping):
        names = sorted(recorded.keys() | played.keys())
        found = (_member(recorded, played, name, path) for name in names)
    elif isinstance(recorded, list) and isinstance(played, list) and len(recorded) == len(played):
        pairs = enumerate(zip(recorded, played, strict=True))
        found = (first_difference(one, other, f"{path}[{at}]") for at, (one, other) in pairs)
    else:
        return f"{path}: recorded {_shown(recorded)}, played {_shown(played)}"
    return next((each for each in found if each is not None), path)


def _member(recorded: Json, played: Json, name: str, path: str) -> str | None:
    where = f"{path}.{name}"
    if name not in recorded:
        return f"{where}: not recorded, played {_shown(played[name])}"
    if name not in played:
        return f"{where}: recorded {_shown(recorded[name])}, not played"
    return first_difference(recorded[name], played[name], where)


def first_of(recorded: Sequence[Json], played: Sequence[Json], name: str) -> str | None:
    """Return where two lists differ first, None if they are equal; a missing end is named."""
    for place, (one, other) in enumerate(zip(recorded, played, strict=False)):
        found = _types_differ(one, other, f"{name} {place}")
        found = found or first_difference(one, other, f"{name} {place}")
        if found is not None:
            return found
    if len(recorded) != len(played):
        return f"{name} {min(len(recorded), len(played))}: {len(recorded)} recorded, {len(played)} played"
    return None


def _types_differ(recorded: Json, played: Json, path: str) -> str | None:
    """Say that two events are of different types, rather than in what else they differ."""
    types = [each.get("type") if isinstance(each, Mapping) else None for each in (recorded, played)]
    if types[0] == types[1]:
        return None
    return f"{path}: recorded {types[0]}, played {types[1]}"


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
