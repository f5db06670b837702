"""One compaction's view of the history: what it summarises, at which prices, and whether that still stands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from everfold.llm.route import Route
from everfold.llm.wellformed import well_formed
from everfold.plugins.waterfalls import Cancellation
from everfold.projections.compaction.errors import CompactionChangedError, CompactionError
from everfold.projections.compaction.requests import (
    Message,
    SummaryInput,
    Unit,
    with_pictures_named,
)
from everfold.projections.compaction.selection import PricedNode, PricedSurface, Span
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.token_meter.meter import window_of
from everfold.projections.token_meter.pricing import route_pricing
from everfold.projections.token_meter.surface_prices import ImagePricing
from everfold.session.request_context import logged_access_path
from everfold.session.session import Session

Trigger = Literal["manual", "pressure", "overflow"]


class NotAsked:
    """A cancellation that nobody asks for."""

    @property
    def is_set(self) -> bool:
        """Never."""
        return False


RouteOf = Callable[[str], Route]
"""Gives the route to a provider, by the name that logs know it by."""


@dataclass(frozen=True, slots=True)
class CompactionWish:
    """Who wants a compaction, and how.

    Attributes:
        trigger: a person, a window that fills up, or a request that was too long.
        provider, model: what the next request asks; the newest in the log if empty.
        command_id: the command that asked for it.
        focus: what a person wants the summary to dwell on.
    """

    trigger: Trigger = "manual"
    provider: str = ""
    model: str = ""
    command_id: str | None = None
    focus: str = ""
    cancellation: Cancellation = field(default_factory=NotAsked)

    @property
    def is_automatic(self) -> bool:
        """Whether nobody asked for it."""
        return self.trigger != "manual"


@dataclass(frozen=True, slots=True)
class Model:
    """Who prices the conversation, who summarises it, and with which settings."""

    pricing: ImagePricing
    route: Route
    config: Mapping[str, Any]
    tools: Sequence[Any]
    window: int | None
    access_path: str | None = None

    @classmethod
    def of(
        cls,
        session: Session,
        wish: CompactionWish,
        settings: CompactionSettings,
        route_of: RouteOf,
    ) -> "Model":
        """Return the model that summarises: the configured one, else the one that is asked next.

        Raises:
            CompactionError: nothing says which model that is.
        """
        event = session.latest("request/header")
        header: Mapping[str, Any] = {} if event is None else event.data["header"]
        logged: Mapping[str, Any] = header.get("config", {})
        asked = wish.provider or logged.get("provider"), wish.model or logged.get("model")
        chosen = (settings.provider or asked[0], settings.model or asked[1])
        if not (chosen[0] and chosen[1] and asked[0] and asked[1]):
            raise CompactionError(
                "the session has asked no model yet; say which one is to summarise it"
            )
        is_own = chosen == (logged.get("provider"), logged.get("model"))
        kept = {name: logged[name] for name in ("reasoningEffort", "temperature") if name in logged}
        route = route_of(str(chosen[0]))
        window = _window(route, chosen, session)
        config = {
            "provider": chosen[0],
            "model": chosen[1],
            **(kept if is_own else {}),
            "maxTokens": settings.summary_tokens(window),
        }
        tools = header.get("tools") or ()
        priced = route if chosen[0] == asked[0] else route_of(str(asked[0]))
        pricing = route_pricing(priced, str(asked[1]))
        return cls(pricing, route, config, tools, window, logged_access_path(session))


def _window(route: Route, model: tuple[Any, Any], session: Session) -> int | None:
    """Return the context window of a model, from its route or from the log; None if unknown."""
    window = route.capabilities(str(model[1])).context_window
    context = session.latest("request/context")
    if window is not None or context is None:
        return window
    is_same = (context.data.get("provider"), context.data.get("model")) == model
    return window_of(context) if is_same else None


@dataclass(frozen=True, slots=True)
class Job:
    """What is summarised, as it was when it was last looked at.

    Attributes:
        seqs: the selected nodes, in surface order.
        limit: what one summary request may cost; None for any.
    """

    wish: CompactionWish
    surface: PricedSurface
    span: Span
    model: Model
    limit: int | None

    @property
    def nodes(self) -> tuple[PricedNode, ...]:
        """The selected nodes."""
        return self.surface.nodes[self.span.start : self.span.end]

    @property
    def seqs(self) -> tuple[int, ...]:
        """Their seqs, in surface order."""
        return tuple(node.seq for node in self.nodes)

    @property
    def price(self) -> int:
        """What they cost on the route: a summary must be cheaper (R283)."""
        return self.surface.price(self.span.start, self.span.end)

    @property
    def fixed_price(self) -> int:
        """What they cost structurally: the shadow price (R309)."""
        return sum(node.fixed for node in self.nodes)

    def check_stands(self, session: Session) -> "Job":
        """Return this job on the session as it is now.

        Automatic compactions want the whole priced surface unchanged; others that the selected
        span is there, contiguous, equally priced and balanced (R277).

        Raises:
            CompactionChangedError: it is not so.
        """
        now = self.on(session)
        if self.wish.is_automatic and now.surface.fingerprint() != self.surface.fingerprint():
            raise CompactionChangedError(
                "the conversation changed while it was being summarised; "
                "the next message may start another attempt"
            )
        if [(n.seq, n.price) for n in now.nodes] != [(n.seq, n.price) for n in self.nodes]:
            raise CompactionChangedError(
                f"the messages {self.seqs[0]} to {self.seqs[-1]} changed while they were being "
                "summarised; compact again"
            )
        return now

    def on(self, session: Session) -> "Job":
        """Return this job with the span found and priced again in the session (R275).

        Raises:
            CompactionChangedError: the span is no longer there, whole and balanced.
        """
        surface = PricedSurface.of(session, self.model.pricing)
        places = {node.seq: at for at, node in enumerate(surface.nodes)}
        start = places.get(self.seqs[0], -1)
        span = Span(start, start + len(self.seqs))
        moved = replace(self, surface=surface, span=span)
        is_whole = start >= surface.first and moved.seqs == self.seqs
        if not is_whole or not (surface.clean[span.start] and surface.clean[span.end]):
            raise CompactionChangedError(
                f"the messages {self.seqs[0]} to {self.seqs[-1]} are no longer together "
                "in the conversation; compact again"
            )
        return moved

    def halved(self) -> "Job":
        """Return this job for requests half as long as they could be so far."""
        whole = self.surface.price(0, self.span.end) if self.limit is None else self.limit
        return replace(self, limit=max(whole // 2, 1))

    def input(
        self, session_id: str, compaction_id: str, prompt: str, done: int = 0
    ) -> SummaryInput:
        """Return what the model is given to summarise (R285).

        Args:
            done: how many of the selected nodes were summarised before.
        """
        head = self.surface.nodes[: self.surface.first]
        focus = self.wish.focus.strip()
        asked = f"{prompt}\n\nDwell on this: {focus}" if focus else prompt
        return SummaryInput(
            session_id=session_id,
            compaction_id=compaction_id,
            head=tuple(node.message for node in head if node.message is not None),
            units=tuple(self._units(done)),
            config=self.model.config,
            tools=self.model.tools,
            instruction=well_formed(asked)[0],
            limit=self.limit,
            access_path=self.model.access_path,
        ).fitted()

    def _units(self, done: int) -> Iterator[Unit]:
        clean, before = self.surface.clean, self.span.start
        first = before + done
        edges = [at for at in range(first, self.span.end + 1) if at == first or clean[at]]
        for start, end in pairwise(edges):
            nodes = self.surface.nodes[start:end]
            stored = [node.message for node in nodes if node.message is not None]
            given = tuple(map(self._given, stored))
            if given:
                is_named = any(one is not other for one, other in zip(stored, given, strict=True))
                price = self.surface.price(start, end)
                yield Unit(given, price, start - before, end - before, is_named)

    def _given(self, message: Message) -> Message:
        """Return a message as the summariser can be given it: a refused picture must not lock history in."""
        if message["role"] != "assistant":
            return message
        takes = self.model.route.capabilities(str(self.model.config["model"]))
        return message if takes.assistant_images else with_pictures_named(message)
