"""Automatic compactions: before a step under pressure, and after a request that was too long (R287, D6)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from everfold.llm.failure import FailureCode
from everfold.plugins.waterfalls import (
    PreStepAnswer,
    PreStepQuestion,
    RequestErrorAnswer,
    RequestErrorQuestion,
    Retry,
)
from everfold.projections.compaction import wishes
from everfold.projections.compaction.bracket import lock_of, open_turn
from everfold.projections.compaction.engine import Compactor, NothingToDo
from everfold.projections.compaction.errors import CompactionCancelledError, CompactionError
from everfold.projections.compaction.job import CompactionWish, Trigger
from everfold.projections.compaction.watching import SessionWatch, Watched
from everfold.projections.token_meter.meter import estimate, tools_of
from everfold.projections.token_meter.prices import message_price
from everfold.projections.token_meter.pricing import route_pricing
from everfold.session.access import SessionAccess
from everfold.session.deciding import AppendEvent
from everfold.session.frozen import Json
from everfold.session.session import Session

_SYSTEM = "system/message"


@dataclass(frozen=True, slots=True)
class Pressure:
    """How full a context window is.

    Attributes:
        tokens: what the next request will cost.
        fixed: what of it no compaction can change: the system prompt and the tools.
        answer: what is set aside for the answer; 0 if the request does not say.
    """

    tokens: int
    fixed: int
    window: int
    answer: int = 0

    def limit(self, threshold: float) -> float:
        """Return from how many tokens on the window is under pressure."""
        return min(threshold * self.window, max(self.window - self.answer, self.window // 4))

    def is_over(self, threshold: float) -> bool:
        """Whether the next request presses."""
        return self.tokens >= self.limit(threshold)

    def is_hopeless(self, threshold: float) -> bool:
        """Whether the part that no compaction can change presses by itself."""
        return self.fixed >= self.limit(threshold)


@dataclass(frozen=True, slots=True)
class AutomaticCompaction:
    """Joins the waterfalls of agents; asks cheaper recoveries first.

    One attempt for each message of a user, and the reason in the log when nothing came of it.
    """

    compactor: Compactor
    watch: SessionWatch

    async def before_step(
        self, question: PreStepQuestion, ask_next: Callable[[], Awaitable[PreStepAnswer]]
    ) -> PreStepAnswer:
        """Summarise before a request that would fill the window; then go on in any case."""
        answer = await ask_next()
        takes = question.capabilities
        window = None if takes is None else takes.context_window
        if window is None or question.cancellation.is_set:
            return answer
        wish = CompactionWish(
            trigger="pressure",
            provider=question.provider,
            model=question.model,
            cancellation=question.cancellation,
        )
        access, threshold = question.session, self.compactor.settings.threshold
        watched, pressure = await access.aside(partial(self._looked_at, access, wish, window))
        if pressure.is_over(threshold) and self._may_try(wish, watched, window):
            if pressure.is_hopeless(threshold):
                await self._skip(access, wish, pressure, _hopeless(pressure))
            else:
                await self._try(access, wish, pressure)
        return answer

    def _looked_at(
        self, access: SessionAccess, wish: CompactionWish, window: int
    ) -> tuple[Watched, Pressure]:
        watched = self.watch.at(access.session_id)
        return watched, self.pressure(access.view(), watched, wish, window)

    async def after_failure(
        self, question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        """Summarise after a context overflow, and have the request sent again.

        Progress is proven by a replacement alone: an omission is none (R287).
        """
        if question.failure.code != FailureCode.CONTEXT_WINDOW_EXCEEDED:
            return await ask_next()
        access = question.session
        before = await access.aside(lambda: access.view().replace_generation)
        answer = await ask_next()
        if answer is not None or question.cancellation.is_set:
            return answer
        watched = await access.aside(lambda: self.watch.at(access.session_id))
        window = watched.meter.window or watched.meter.surface.fixed
        wish = CompactionWish(
            trigger="overflow", provider=question.provider, cancellation=question.cancellation
        )
        if self._may_try(wish, watched, window):
            tokens = watched.meter.surface.fixed + tools_of(watched.meter.header)
            await self._try(access, wish, Pressure(tokens, 0, window))
        after = await access.aside(lambda: access.view().replace_generation)
        return Retry(spends_budget=False) if after > before else None

    def pressure(
        self, session: Session, watched: Watched, wish: CompactionWish, window: int
    ) -> Pressure:
        """Return how full the window of a request's model is.

        Raises:
            MeterError: the route gave another number of prices than there are images.
        """
        pricing = route_pricing(self.compactor.route_of(wish.provider), wish.model)
        event = session.latest("request/header")
        header = None if event is None else _asking(event.data["header"], wish)
        if watched.fault is None:
            tokens = estimate(watched.meter, pricing, header)
        else:
            tokens = tools_of(header) + sum(map(message_price, session.messages()))
        fixed = tools_of(header) + _head_price(session)
        return Pressure(tokens, fixed, window, _answer_tokens(header))

    def _may_try(self, wish: CompactionWish, watched: Watched, window: int) -> bool:
        regrown = int(self.compactor.settings.regrowth * window)
        return watched.attempts.allows(wish.trigger, watched.meter.total, regrown)

    async def _try(self, access: SessionAccess, wish: CompactionWish, pressure: Pressure) -> None:
        """Summarise; a failure is in the log already, and the turn goes on."""
        try:
            outcome = await self.compactor.compact(access, wish)
        except CompactionCancelledError:
            return
        except CompactionError as error:
            if not await access.aside(partial(_is_told, access, self.watch)):
                await self._skip(access, wish, pressure, str(error))
            return
        if isinstance(outcome, NothingToDo):
            await self._skip(access, wish, pressure, outcome.reason)

    async def _skip(
        self, access: SessionAccess, wish: CompactionWish, pressure: Pressure, reason: str
    ) -> None:
        trigger: Trigger = wish.trigger

        def plan(session: Session) -> list[AppendEvent]:
            turn: Json = open_turn(session)
            return [wishes.skipped(turn, trigger, reason, pressure.tokens, pressure.window)]

        await access.aside(lambda: access.append(plan))


def _is_told(access: SessionAccess, watch: SessionWatch) -> bool:
    """Tell whether the log says why nothing came of an attempt, or will by the attempt under way."""
    return lock_of(access.view()) is not None or _is_logged(access, watch)


def _is_logged(access: SessionAccess, watch: SessionWatch) -> bool:
    """Tell whether the newest attempt is one for the newest words, so that its reason is logged."""
    attempts = watch.at(access.session_id).attempts
    return max(attempts.tried_seq, attempts.skipped_seq) > attempts.words_seq


def _hopeless(pressure: Pressure) -> str:
    return (
        f"system prompt and tools alone take {pressure.fixed} of {pressure.window} tokens, so no "
        "compaction can help; shorten them, or choose a model with a larger context window"
    )


def _asking(header: Json, wish: CompactionWish) -> Json:
    """Return the header with the provider and model that are asked next."""
    config = header["config"]
    if (config.get("provider"), config.get("model")) == (wish.provider, wish.model):
        return header
    return {**header, "config": {**config, "provider": wish.provider, "model": wish.model}}


def _answer_tokens(header: Json) -> int:
    """Return how long the answer may become by the header; 0 if it does not say."""
    tokens = None if header is None else header["config"].get("maxTokens")
    return tokens if type(tokens) is int else 0


def _head_price(session: Session) -> int:
    """Return what the leading system message costs."""
    nodes = session.nodes
    event = session.event(nodes[0]) if nodes else None
    if event is None or event.type != _SYSTEM:
        return 0
    return message_price(event.data["message"])
