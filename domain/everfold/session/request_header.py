"""The request header: what a request was sent with, and when the log gets a new one (group N)."""

from collections.abc import Iterable, Mapping
from typing import Literal

import orjson

from everfold.session.events import EventLike
from everfold.session.frozen import Json, json_equal

Reason = Literal["initial", "resume", "change", "series"]

CONFIG_FIELDS = ("provider", "model", "reasoningEffort", "temperature", "maxTokens", "stop")
_DEFAULTS = ("reasoningEffort", "maxTokens")


def fold_header(events: Iterable[EventLike], start: Json | None = None) -> Json | None:
    """Return the current header: the latest snapshot, never a merge; None if there is none (R188).

    Args:
        start: the header before these events.
    """
    header = start
    for event in events:
        if event.type == "request/header":
            header = event.data["header"]
    return header


def canonical(header: Mapping[str, Json]) -> dict[str, Json]:
    """Return the header without unknown fields, an empty tool list, and unset default marks (R187)."""
    result: dict[str, Json] = {"config": header["config"]}
    defaults = header.get("adapterDefaults")
    if isinstance(defaults, Mapping) and any(defaults.get(name) is True for name in _DEFAULTS):
        result["adapterDefaults"] = defaults
    if header.get("tools"):
        result["tools"] = header["tools"]
    return result


def headers_equal(left: Mapping[str, Json], right: Mapping[str, Json]) -> bool:
    """Tell whether two headers ask for the same (R189 to R192)."""
    return (
        _fields_equal(left["config"], right["config"], CONFIG_FIELDS)
        and _fields_equal(_marks(left), _marks(right), _DEFAULTS)
        and _tools_text(left) == _tools_text(right)
    )


def next_header(
    header: Mapping[str, Json],
    *,
    baseline: Mapping[str, Json] | None,
    is_logged: bool,
    starts_series: bool,
) -> dict[str, Json] | None:
    """Return the data of the `request/header` to write before the next request, None for none.

    Args:
        header: what the request will be sent with.
        baseline: the latest header in the log.
        is_logged: whether this loop instance has written one already.
        starts_series: whether the request starts a new series (R197).

    Source: R193 to R196.
    """
    if not is_logged or baseline is None:
        reason: Reason = "initial" if baseline is None else "resume"
        return {"header": canonical(header), "reason": reason}
    if not headers_equal(header, baseline):
        record: dict[str, Json] = {"header": canonical(header), "reason": "change"}
        return {**record, "startsSeries": True} if starts_series else record
    return {"header": canonical(header), "reason": "series"} if starts_series else None


def _marks(header: Mapping[str, Json]) -> Mapping[str, Json]:
    defaults = header.get("adapterDefaults")
    return defaults if isinstance(defaults, Mapping) else {}


def _fields_equal(
    left: Mapping[str, Json], right: Mapping[str, Json], names: tuple[str, ...]
) -> bool:
    return all(
        (name in left) == (name in right) and json_equal(left.get(name), right.get(name))
        for name in names
    )


def _tools_text(header: Mapping[str, Json]) -> bytes:
    return orjson.dumps(header.get("tools") or [])
