"""What is summarised: a part of the surface whose ends divide no tool call from its result (R286)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everfold.projections.compaction.pairing import cuts
from everfold.projections.compaction.wishes import PLUGIN
from everfold.projections.token_meter.surface_prices import ImagePricing, Node, image_difference
from everfold.session.session import Session

SYSTEM = "system/message"


@dataclass(frozen=True, slots=True)
class PricedNode:
    """A node, what it shows the model, and its prices.

    Attributes:
        message: None if it gives no message.
        price: as the route prices its images.
    """

    seq: int
    kind: str
    message: Mapping[str, Any] | None
    fixed: int
    price: int

    @property
    def is_words_of_user(self) -> bool:
        """Whether a person said it."""
        return self.kind == "user/message" and self._source.get("kind") == "user"

    @property
    def is_checkpoint(self) -> bool:
        """Whether it is the summary of an earlier compaction."""
        return self.kind == "user/message" and self._source.get("plugin") == PLUGIN

    @property
    def _source(self) -> Mapping[str, Any]:
        source = None if self.message is None else self.message.get("source")
        return source if isinstance(source, dict) else {}


@dataclass(frozen=True, slots=True)
class PricedSurface:
    """A surface as a compaction sees it.

    Attributes:
        clean: for each place, 0 to the number of nodes, whether one may cut there.
    """

    nodes: tuple[PricedNode, ...]
    clean: tuple[bool, ...]

    @classmethod
    def of(cls, session: Session, pricing: ImagePricing | None) -> "PricedSurface":
        """Return the surface of a session, priced.

        Raises:
            MeterError: the route gave another number of prices than there are images (R305).
            ProjectionChangedError: the interpreters in force are not those of this history.
        """
        nodes = tuple(_priced(session, pricing))
        open_places = _open_places(session, nodes)
        return cls(nodes, tuple(cuts([node.message for node in nodes], open_places)))

    @property
    def first(self) -> int:
        """The first place that may be summarised: after a leading system message."""
        return 1 if self.nodes and self.nodes[0].kind == SYSTEM else 0

    def price(self, start: int, end: int) -> int:
        """Return what the nodes from place `start` up to `end` cost."""
        return sum(node.price for node in self.nodes[start:end])

    def fingerprint(self) -> tuple[tuple[int, int], ...]:
        """Return what must stay equal for an automatic compaction (R277)."""
        return tuple((node.seq, node.price) for node in self.nodes)


def _priced(session: Session, pricing: ImagePricing | None) -> list[PricedNode]:
    shown = dict(session.messages().items())
    nodes = []
    for seq in session.nodes:
        event, message = session.event(seq), shown.get(seq)
        kind = "" if event is None else event.type
        node = Node.of(seq, kind, message)
        fixed = 0 if message is None else node.fixed
        price = fixed + image_difference((node,), pricing)
        nodes.append(PricedNode(seq, kind, message, fixed, price))
    return nodes


def _open_places(session: Session, nodes: Sequence[PricedNode]) -> set[int]:
    """Return the places of nodes whose calls may still be answered."""
    turn = session.latest("turn/start")
    if turn is not None and session.is_turn_open:
        return {at for at, node in enumerate(nodes) if node.seq > turn.seq}
    place = len(nodes)
    while place and nodes[place - 1].kind in ("tool/result", "assistant/message"):
        place -= 1
    return set(range(place, len(nodes)))


@dataclass(frozen=True, slots=True)
class Span:
    """The nodes at places `start` up to, not including, `end`."""

    start: int
    end: int


def select(
    surface: PricedSurface, keep_tokens: int, min_tokens: int, *, keeps_turn: bool
) -> Span | str:
    """Return what is to be summarised, or why there is nothing.

    Args:
        keep_tokens: how much of the end stays, at most; the newest message or exchange always does.
        min_tokens: a part that costs less is not worth a summary.
        keeps_turn: whether nothing but the newest words of the user, and what followed, stays.
    """
    tail = _tail(surface, keep_tokens, keeps_turn)
    spans = [_clean(surface, start, min(end, tail)) for start, end in _runs(surface)]
    found = [span for span in spans if span.start < span.end]
    if not found:
        return "there is nothing before the newest messages, and these are kept"
    best = max(found, key=lambda span: surface.price(span.start, span.end))
    nodes = surface.nodes[best.start : best.end]
    if all(node.is_checkpoint or node.price == 0 for node in nodes):
        return "nothing was said since the last compaction but what is kept"
    price = surface.price(best.start, best.end)
    if price < min_tokens:
        return f"what could be summarised takes {price} tokens, less than the {min_tokens} worth it"
    return best


def _tail(surface: PricedSurface, keep_tokens: int, keeps_turn: bool) -> int:
    """Return the place where the part begins that stays."""
    nodes = surface.nodes
    places = [place for place in range(surface.first, len(nodes)) if surface.clean[place]]
    if not places:
        return surface.first
    price, tail = 0, places[-1]
    for place in range(len(nodes) - 1, surface.first - 1, -1):
        price += nodes[place].price
        if price > keep_tokens:
            break
        if surface.clean[place]:
            tail = min(tail, place)
    if not keeps_turn:
        return tail
    words = _newest_words(surface)
    return max(tail, max((place for place in places if place <= words), default=surface.first))


def _newest_words(surface: PricedSurface) -> int:
    """Return the place of what the user said last; of any message of that role if nobody did."""
    said = [at for at, node in enumerate(surface.nodes) if node.is_words_of_user]
    given = [
        at
        for at, node in enumerate(surface.nodes)
        if node.kind == "user/message" and not node.is_checkpoint
    ]
    return max(said or given or [len(surface.nodes)])


def _runs(surface: PricedSurface) -> list[tuple[int, int]]:
    """Return the parts that hold no system prompt in force: one later than the first may be."""
    prompts = [
        at
        for at, node in enumerate(surface.nodes)
        if at >= surface.first and node.kind == SYSTEM and node.message is not None
    ]
    if not prompts:
        return [(surface.first, len(surface.nodes))]
    return [(surface.first, prompts[-1]), (prompts[-1] + 1, len(surface.nodes))]


def _clean(surface: PricedSurface, start: int, end: int) -> Span:
    """Return the widest span within two places that begins and ends at clean cuts."""
    places = [place for place in range(start, end + 1) if surface.clean[place]]
    return Span(places[0], places[-1]) if places else Span(start, start)
