"""Read model `context-pressure`: how full the context window is, from running totals alone (R309, R310)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from everfold.plugins.read_models import ReadModel
from everfold.projections.token_meter.meter import (
    SHADOW_TYPES,
    Shadow,
    running_total,
    shadow_of,
    tools_of,
    usage_tokens,
    window_of,
)
from everfold.projections.token_meter.prices import message_price
from everfold.projections.token_meter.surface_fold import covered_by
from everfold.session.derive import message_of
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.request_header import headers_equal
from everfold.session.vocabulary import MESSAGE_TYPES


@dataclass(frozen=True, slots=True)
class TotalAnchor:
    """What a provider counted, and the running total then."""

    tokens: int
    total: int
    header: Mapping[str, Json] | None


@dataclass(frozen=True, slots=True)
class PressureState:
    """Running totals; a few numbers and two headers, however long the log is.

    Attributes:
        total: structural price of the surface; see `Metered.total`.
        window: tokens that the newest request's model takes; None if unknown.
    """

    total: int = 0
    shadow: Shadow | None = None
    header: Mapping[str, Json] | None = None
    anchor: TotalAnchor | None = None
    window: int | None = None


def _fold(state: PressureState, event: EventLike) -> PressureState:
    if event.type in MESSAGE_TYPES:
        return _with_message(state, event)
    if event.type in SHADOW_TYPES:
        return replace(state, shadow=shadow_of(event))
    if event.type == "request/context":
        return replace(state, window=window_of(event))
    return replace(state, header=event.data["header"])


def _with_message(state: PressureState, event: EventLike) -> PressureState:
    price, covered = message_price(message_of(event) or {}), covered_by(event)
    if covered is None:
        total = state.total + price
    else:
        total = running_total(state.total, state.shadow, event.seq, covered, price)
    tokens = usage_tokens(event)
    state = replace(state, total=total)
    return (
        state if tokens is None else replace(state, anchor=TotalAnchor(tokens, total, state.header))
    )


def tokens_of(state: PressureState) -> int:
    """Return the estimate of the next request, images at their structural prices (R301, R307)."""
    tools = tools_of(state.header)
    now, anchor = tools + state.total, state.anchor
    if anchor is None or anchor.header is None or state.header is None:
        return now
    then = tools + anchor.total
    is_reused = headers_equal(anchor.header, state.header) and anchor.tokens >= then
    return anchor.tokens + now - then if is_reused else now


def _view(state: PressureState) -> Json:
    tokens = tokens_of(state)
    config = {} if state.header is None else state.header["config"]
    return {
        "tokens": tokens,
        "contextWindow": state.window,
        "share": None if not state.window else round(tokens / state.window, 4),
        "isCounted": tokens != tools_of(state.header) + state.total,
        "provider": config.get("provider"),
        "model": config.get("model"),
    }


def _dump(state: PressureState) -> Json:
    shadow, anchor = state.shadow, state.anchor
    is_same = anchor is not None and anchor.header == state.header
    return {
        "total": state.total,
        "shadow": shadow and [shadow.seq, shadow.start, shadow.end, shadow.tokens],
        "header": state.header,
        # The header of the anchor is nearly always the newest one: it is written once.
        "anchor": anchor and [anchor.tokens, anchor.total, None if is_same else anchor.header],
        "isAnchorHeader": is_same,
        "window": state.window,
    }


def _load(state: Json) -> PressureState:
    anchor = state["anchor"] and TotalAnchor(*state["anchor"])
    if anchor and state["isAnchorHeader"]:
        anchor = replace(anchor, header=state["header"])
    return PressureState(
        state["total"],
        state["shadow"] and Shadow(*state["shadow"]),
        state["header"],
        anchor,
        state["window"],
    )


CONTEXT_PRESSURE = ReadModel(
    name="context-pressure",
    version=5,
    types=MESSAGE_TYPES | SHADOW_TYPES | {"request/context", "request/header"},
    start=PressureState,
    fold=_fold,
    dump=_dump,
    load=_load,
    view=_view,
)
