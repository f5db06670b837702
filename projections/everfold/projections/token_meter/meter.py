"""The meter: a fold of a log that knows what the next request will cost (group V)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from everfold.projections.token_meter.errors import MeterError
from everfold.projections.token_meter.prices import message_price, tools_price
from everfold.projections.token_meter.surface_fold import MARKS, covered_by, surface_after
from everfold.projections.token_meter.surface_prices import ImagePricing, SurfacePrices
from everfold.session.derive import message_of
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.request_header import headers_equal
from everfold.session.vocabulary import MESSAGE_TYPES

SHADOW_TYPES = frozenset(("compaction/summary", "compaction/prune"))
"""The events that say what the nodes cost that the event directly after them hides (R309)."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a provider counted for one request and its answer, and the surface that it saw (R303).

    Attributes:
        seq: the assistant message.
        tokens: input and output together.
        header: what the request was sent with; None if the log holds no header before it.
    """

    seq: int
    tokens: int
    header: Mapping[str, Json] | None
    surface: SurfacePrices


@dataclass(frozen=True, slots=True)
class Shadow:
    """The price of a range of nodes that is about to be hidden."""

    seq: int
    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Metered:
    """What a log adds up to for the meter; a value.

    Attributes:
        next_seq: the event that is read next.
        surface: every current node with its price.
        total: the running total of the surface: appends add, a replacement takes off the shadow
            price before it, one without a shadow price changes nothing (R309).
        header: the newest request header.
        anchor: the newest usage.
        window: tokens that the newest request's model takes; None if unknown.
    """

    next_seq: int = 0
    surface: SurfacePrices = field(default_factory=SurfacePrices)
    total: int = 0
    shadow: Shadow | None = None
    header: Mapping[str, Json] | None = None
    anchor: Anchor | None = None
    window: int | None = None


class Meter:
    """Reads the events of one session in order; one that it cannot read stays unread (R311)."""

    def __init__(self, start: Metered | None = None) -> None:
        self.state = Metered() if start is None else start

    def read(self, events: Iterable[EventLike]) -> None:
        """Take further events; those read before are passed over.

        Raises:
            MeterError: an event does not fit; those before it are read, it is not, and the next
                call fails the same way.
        """
        for event in events:
            if event.seq >= self.state.next_seq:
                self.state = stepped(self.state, event)

    def estimate(
        self, pricing: ImagePricing | None = None, header: Mapping[str, Json] | None = None
    ) -> int:
        """Return the tokens of the next request; see `estimate`."""
        return estimate(self.state, pricing, header)


def estimate(
    state: Metered,
    pricing: ImagePricing | None = None,
    header: Mapping[str, Json] | None = None,
) -> int:
    """Return the tokens of a request with the current surface.

    What a provider counted is reused for an equal header, if it is not below the estimate of the
    surface that it was counted for; what changed since is added by structural price (R307).

    Args:
        pricing: the route's prices of images; their structural prices if None.
        header: what the request will be sent with; the newest in the log if None.

    Raises:
        MeterError: the route gave another number of prices than there are images (R305).
    """
    sent = state.header if header is None else header
    tools = tools_of(sent)
    now = tools + state.surface.price(pricing)
    anchor = state.anchor
    if anchor is None or anchor.header is None or sent is None:
        return now
    if not headers_equal(anchor.header, sent):
        return now
    then = tools + anchor.surface.price(pricing)
    return anchor.tokens + now - then if anchor.tokens >= then else now


def tools_of(header: Mapping[str, Json] | None) -> int:
    """Return the price of a header's tools."""
    return 0 if header is None else tools_price(header.get("tools"))


def stepped(state: Metered, event: EventLike) -> Metered:
    """Return the state after one more event.

    Raises:
        MeterError: the event does not fit (R306, R309).
    """
    if event.type in MESSAGE_TYPES:
        state = _with_message(state, event)
    else:
        step = _STEPS.get(event.type)
        state = state if step is None else step(state, event)
    return replace(state, next_seq=event.seq + 1)


def _with_message(state: Metered, event: EventLike) -> Metered:
    surface = surface_after(state.surface, event)
    covered = covered_by(event)
    if covered is None:
        total = state.total + surface.fixed - state.surface.fixed
    else:
        price = message_price(message_of(event) or {})
        total = running_total(state.total, state.shadow, event.seq, covered, price)
    state = replace(state, surface=surface, total=total)
    tokens = usage_tokens(event)
    if tokens is None:
        return state
    return replace(state, anchor=Anchor(event.seq, tokens, state.header, surface))


def running_total(
    total: int, shadow: Shadow | None, seq: int, covered: tuple[int, int], price: int
) -> int:
    """Return the running total after a replacement (R309).

    Raises:
        MeterError: the shadow price directly before it is for another range.
    """
    if shadow is None or shadow.seq != seq - 1:
        return total
    if (shadow.start, shadow.end) != covered:
        raise MeterError(
            f"the replacement at seq {seq} covers {covered[0]} to {covered[1]}, "
            f"the price before it is for {shadow.start} to {shadow.end}",
            seq=seq,
        )
    return total - shadow.tokens + price


def usage_tokens(event: EventLike) -> int | None:
    """Return the tokens that a provider counted for an answer and its request, None if it did not."""
    usage = event.data.get("usage") if event.type == "assistant/message" else None
    if not isinstance(usage, dict):
        return None
    total = usage.get("totalTokens")
    if type(total) is int:
        return total
    given, made = usage.get("inputTokens"), usage.get("outputTokens")
    return given + made if type(given) is int and type(made) is int else None


def shadow_of(event: EventLike) -> Shadow | None:
    """Return the shadow price that an event states, None if it states none."""
    data = event.data
    covered = data.get("shadowedRange") if isinstance(data, dict) else None
    tokens = data.get("shadowedTokenCount") if isinstance(data, dict) else None
    if not isinstance(covered, dict) or not isinstance(tokens, (int, float)):
        return None
    start, end = covered.get("start"), covered.get("end")
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        return None
    return Shadow(event.seq, int(start), int(end), int(tokens))


def _with_shadow(state: Metered, event: EventLike) -> Metered:
    return replace(state, shadow=shadow_of(event))


def _with_header(state: Metered, event: EventLike) -> Metered:
    return replace(state, header=event.data["header"])


def _with_context(state: Metered, event: EventLike) -> Metered:
    return replace(state, window=window_of(event))


def window_of(event: EventLike) -> int | None:
    """Return the context window that a `request/context` states, None if it states none."""
    window: Any = event.data.get("contextWindow") if isinstance(event.data, dict) else None
    return window if type(window) is int else None


def _with_marks(state: Metered, event: EventLike) -> Metered:
    return replace(state, surface=surface_after(state.surface, event))


_STEPS: Mapping[str, Callable[[Metered, EventLike], Metered]] = {
    **dict.fromkeys(SHADOW_TYPES, _with_shadow),
    **dict.fromkeys(MARKS, _with_marks),
    "request/header": _with_header,
    "request/context": _with_context,
}
READ_TYPES = MESSAGE_TYPES | _STEPS.keys()
"""The event types that a meter looks at."""
