"""Read model `usage`: tokens by model, failed attempts and summaries included; and what they cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from everfold.plugins.read_models import ReadModel
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.state import END_SEED, is_inherited_marker

COUNTS = (
    "inputTokens",
    "outputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "reasoningTokens",
)
_MILLION = 1_000_000

Counts = Mapping[str, int]
ByModel = Mapping[tuple[str, str], Counts]


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in one currency, for a million tokens of each kind.

    Attributes:
        cache_read: for input tokens that came from the provider's cache.
        cache_write: for input tokens that were put into it.
    """

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0


@dataclass(frozen=True, slots=True)
class UsageState:
    """Token counts by provider and model.

    Attributes:
        own: what this session spent.
        inherited: what was spent before it was forked; the parent's.
        asked: provider and model of the newest request header.
    """

    own: ByModel = field(default_factory=dict)
    inherited: ByModel = field(default_factory=dict)
    asked: tuple[str, str] = ("", "")


def _fold(state: UsageState, event: EventLike) -> UsageState:
    data = event.data if isinstance(event.data, Mapping) else {}
    match event.type:
        case "request/header":
            return replace(state, asked=_named(data["header"]["config"]))
        case "assistant/message":
            return _added(state, _named(data["message"]["source"]), data.get("usage"))
        case "assistant/attempt":
            return _added(state, state.asked, _streamed(data.get("stream")))
        case "compaction/summary":
            return _added(state, _named(data), data.get("usage"))
        case _ if is_inherited_marker(event.data):
            return replace(state, own={}, inherited=_merged(state.inherited, state.own))
    return state


def _named(data: Mapping[str, Any]) -> tuple[str, str]:
    return str(data.get("provider", "")), str(data.get("model", ""))


def _streamed(stream: Json) -> Json:
    """Return the token counts of a failed attempt, from the last one that its stream holds."""
    records = stream if isinstance(stream, list) else []
    chunks = [record.get("chunk") for record in records if isinstance(record, Mapping)]
    usages = [c.get("usage") for c in chunks if isinstance(c, Mapping) and c.get("type") == "usage"]
    return usages[-1] if usages else None


def _added(state: UsageState, model: tuple[str, str], usage: Json) -> UsageState:
    if not isinstance(usage, Mapping):
        return state
    counts = {name: usage[name] for name in COUNTS if type(usage.get(name)) is int}
    return replace(state, own=_merged(state.own, {model: {"requests": 1, **counts}}))


def _merged(left: ByModel, right: ByModel) -> ByModel:
    result = dict(left)
    for model, counts in right.items():
        before = result.get(model, {})
        names = before.keys() | counts.keys()
        result[model] = {name: before.get(name, 0) + counts.get(name, 0) for name in names}
    return result


def cost(view: Json, prices: Mapping[tuple[str, str], Price]) -> float | None:
    """Return what a session spent itself, in the prices' currency; None if a model has no price.

    Args:
        view: of this read model.
        prices: by provider and model.
    """
    total = 0.0
    for line in view["own"]:
        price = prices.get((line["provider"], line["model"]))
        if price is None:
            return None
        total += _cost(line, price)
    return total


def _cost(line: Mapping[str, Any], price: Price) -> float:
    read, written = line.get("cacheReadTokens", 0), line.get("cacheWriteTokens", 0)
    plain = max(line.get("inputTokens", 0) - read - written, 0)
    parts = (
        plain * price.input,
        read * price.cache_read,
        written * price.cache_write,
        line.get("outputTokens", 0) * price.output,
    )
    return float(sum(parts)) / _MILLION


def _lines(by_model: ByModel) -> list[Json]:
    return [
        {"provider": provider, "model": model, **dict(sorted(counts.items()))}
        for (provider, model), counts in sorted(by_model.items())
    ]


def _view(state: UsageState) -> Json:
    return {"own": _lines(state.own), "inherited": _lines(state.inherited)}


def _dump(state: UsageState) -> Json:
    return {**_view(state), "asked": list(state.asked)}


def _load(state: Json) -> UsageState:
    provider, model = state["asked"]
    return UsageState(_loaded(state["own"]), _loaded(state["inherited"]), (provider, model))


def _loaded(lines: list[Mapping[str, Any]]) -> ByModel:
    names = ("provider", "model")
    return {
        _named(line): {key: value for key, value in line.items() if key not in names}
        for line in lines
    }


USAGE = ReadModel(
    name="usage",
    version=1,
    types=frozenset(
        (
            "request/header",
            "assistant/message",
            "assistant/attempt",
            "compaction/summary",
            END_SEED,
        )
    ),
    start=UsageState,
    fold=_fold,
    dump=_dump,
    load=_load,
    view=_view,
)
