"""A step's answer: asked for, recovered, retried, and settled in the log (groups N and S)."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from everfold.agent import wishes
from everfold.agent.attempt import Attempt, Attempting
from everfold.agent.calling import Call
from everfold.agent.cancelling import (
    TurnCancellation,
    carried,
    is_own_failure,
    start,
    stop,
    until_cancelled,
)
from everfold.agent.log import OwnedTurn, fixed
from everfold.agent.loop import Loop
from everfold.agent.pointing import pointed
from everfold.agent.retrying import budget_answer, retry_event, retry_started
from everfold.agent.settling import Settlement, attempt_wish
from everfold.llm.chunks import Chunk
from everfold.llm.failure import LlmFailure
from everfold.llm.route import LlmRequest, Prepared
from everfold.plugins.waterfalls import (
    PreStepAnswer,
    PreStepQuestion,
    RequestErrorQuestion,
    Retry,
    ask,
)
from everfold.session.deciding import AppendEvent
from everfold.session.errors import TooLargeError
from everfold.session.frozen import Json
from everfold.session.session import Session


@dataclass(frozen=True, slots=True)
class Called:
    """The answer is stored, and wants these tools called."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn ends for this reason; step and turn are still open in the log."""

    reason: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Closed:
    """The step was closed with its answer; the turn too, unless there is a next step open."""

    next_step: int | None


Settled = Called | Ended | Closed

T = TypeVar("T")


@dataclass(slots=True)
class _Step:
    """How often a step was tried, and what was refused last.

    Attributes:
        session: what the newest request was built from.
    """

    number: int
    attempts: int = 0
    retries: int = 0
    recoveries: int = 0
    refused: tuple[LlmRequest, LlmFailure] | None = None
    refused_prepared: Prepared | None = None
    failure: LlmFailure | None = None
    session: Session | None = None

    def note(self, request: LlmRequest, attempt: Attempt, failure: LlmFailure) -> None:
        """Remember a failure; a request that was refused for itself is not sent again (A6)."""
        self.failure = failure
        is_refused = not failure.is_retryable
        self.refused = (request, failure) if is_refused else None
        self.refused_prepared = attempt.prepared if is_refused else None

    def repeats(self, request: LlmRequest) -> bool:
        """Tell whether this is the very request that was refused."""
        return self.refused is not None and self.refused[0] == request


@dataclass(slots=True)
class Answering:
    """Gets the answers of one turn's steps."""

    loop: Loop
    owned: OwnedTurn
    cancellation: TurnCancellation
    _place: dict[str, int] = field(default_factory=dict)

    async def settle(self, number: int) -> Settled:
        """Ask the model until there is an answer, a cancellation, or a failure that nothing recovers."""
        step = _Step(number)
        self._place = {"turn": self.owned.turn, "step": number}
        while not self.cancellation.is_set:
            step.attempts += 1
            request, seq = await self._request(step)
            if self._is_pointless(step, request):
                break
            attempt = await self._attempt(request, step)
            if attempt.is_repeat:
                break
            if attempt.failure is None:
                return await self._store_answer(step, request, seq, attempt)
            await self._store_attempt(attempt, seq)
            if not await self._recovered(step, request, attempt, attempt.failure):
                break
        return Ended(self._end(step))

    def _is_pointless(self, step: _Step, request: LlmRequest) -> bool:
        """Tell whether nobody wants the answer any more, or the same request was just refused."""
        return self.cancellation.is_set or step.repeats(request)

    def _end(self, step: _Step) -> Mapping[str, Json]:
        if self.cancellation.reason is not None:
            return {"kind": "aborted", "reason": self.cancellation.reason}
        assert step.failure is not None, "a step without an answer has failed"
        return wishes.error_reason(step.failure)

    # The request.

    async def _request(self, step: _Step) -> tuple[LlmRequest, int]:
        """Return the next request, all of it stored, and the last seq that it saw (C10)."""
        loop = self.loop
        model = loop.settings.model
        question = PreStepQuestion(
            session=loop.log.access,
            turn=self.owned.turn,
            step=step.number,
            provider=model.provider,
            model=model.model,
            kind="first" if step.attempts == 1 else "retry",
            cancellation=self.cancellation,
            capabilities=loop.capabilities,
        )
        nothing = PreStepAnswer()
        asking = ask(loop.waterfalls.pre_step, question, nothing, loop.report, is_own_failure)
        answer = await self._unless_cancelled(asking, nothing)
        session = await self._announced(step, answer.starts_series and step.attempts == 1)
        step.session = session
        return loop.builder.build(session), await loop.log.request_seq(session)

    async def _announced(self, step: _Step, starts_series: bool) -> Session:
        """Store prompt, header and context until they say what the log shows; return that log."""
        loop = self.loop
        while True:
            session = await loop.log.load()
            self.owned.check(session)
            batch, _ = self._announcement(session, step, starts_series)
            if not batch:
                return session
            generation = session.content_generation

            def plan(
                session: Session, starts_series: bool = starts_series
            ) -> Sequence[AppendEvent]:
                nonlocal generation
                batch, generation = self._announcement(session, step, starts_series)
                return batch

            await loop.log.append(plan, owned=self.owned)
            loop.is_header_logged, loop.generation = True, generation
            starts_series = False

    def _announcement(
        self, session: Session, step: _Step, starts_series: bool
    ) -> tuple[list[AppendEvent], int]:
        return self.loop.announce(
            session, self.owned.turn, step.number, starts_series=starts_series
        )

    async def _attempt(self, request: LlmRequest, step: _Step) -> Attempt:
        loop = self.loop
        assert step.session is not None, "a request was built from it"
        attempting = Attempting(
            loop.route_to(request.config["provider"]),
            loop.settings.limits,
            self.cancellation,
            loop.log.now,
            self._tell,
            step.refused_prepared,
            partial(pointed, session=step.session),
        )
        return await attempting.run(request)

    def _tell(self, chunk: Chunk) -> None:
        turn, step = self._place["turn"], self._place["step"]
        self.loop.log.tell(lambda watcher: watcher.on_chunk(turn, step, chunk))

    # Settling.

    async def _store_answer(
        self, step: _Step, request: LlmRequest, seq: int, attempt: Attempt
    ) -> Settled:
        settlement = Settlement(
            self.loop, self.owned, step.number, request, attempt, self.cancellation.reason
        )
        if not settlement.has_message:
            await self._store_attempt(attempt, seq)
            return Ended(settlement.reason)
        for keeps_stream in (True, False):
            try:
                events = await self.loop.log.append(
                    partial(settlement.plan, keeps_stream=keeps_stream),
                    owned=self.owned,
                    request_seq=seq,
                )
            except TooLargeError as error:
                step.failure = LlmFailure(f"the answer cannot be kept: {error}", error.code)
            else:
                calls = settlement.calls(events)
                return Called(calls) if calls else Closed(settlement.next_step)
        await self._store_attempt(attempt, seq)
        return Ended(self._end(step))

    async def _store_attempt(self, attempt: Attempt, seq: int) -> None:
        """Store an attempt that gave no message, before anybody is asked about it (R261)."""
        for records in (attempt.assembler.records, attempt.assembler.records[-1:], []):
            batch = (attempt_wish(self._place, records),)
            try:
                await self.loop.log.append(fixed(batch), owned=self.owned, request_seq=seq)
            except TooLargeError:
                continue
            return

    async def _unless_cancelled(self, asking: Coroutine[Any, Any, T], otherwise: T) -> T:
        """Return what plugins answer; a cancelled turn does not wait for them, and stops them.

        Raises:
            ProgramEndError: one of them wants to end the program.
        """
        work = start(carried(asking), "waterfall")
        if await until_cancelled(work, self.cancellation, None):
            return work.result()
        await stop(work, self.loop.settings.limits.grace_s)
        return otherwise

    # Recovery.

    async def _recovered(
        self, step: _Step, request: LlmRequest, attempt: Attempt, failure: LlmFailure
    ) -> bool:
        """Ask what now, and do it; False if the failure stands (R262 to R268)."""
        loop = self.loop
        policy = loop.settings.retry
        step.note(request, attempt, failure)
        question = RequestErrorQuestion(
            session=loop.log.access,
            turn=self.owned.turn,
            step=step.number,
            provider=request.config["provider"],
            failure=failure,
            attempt=step.attempts,
            retries_left=max(policy.max_retries - step.retries, 0),
            cancellation=self.cancellation,
        )
        default = budget_answer(failure, step.retries, policy, loop.jitter)
        asking = ask(loop.waterfalls.request_error, question, default, loop.report, is_own_failure)
        answer = await self._unless_cancelled(asking, None)
        if answer is None or self.cancellation.is_set:
            return False
        if answer.spends_budget:
            return await self._retry(step, failure, answer)
        step.recoveries += 1
        if step.recoveries > loop.settings.limits.recoveries:
            return False
        await self._pause(answer.delay_ms)
        return True

    async def _retry(self, step: _Step, failure: LlmFailure, answer: Retry) -> bool:
        loop = self.loop
        policy = loop.settings.retry
        if step.retries >= policy.max_retries:
            return False
        step.retries += 1
        facts = {
            "retryId": loop.log.new_id(),
            "provider": loop.settings.model.provider,
            "retry": step.retries,
            "maxRetries": policy.max_retries,
        }
        planned = retry_event(self._place, failure, answer, facts)
        await loop.log.append(fixed((planned,)), owned=self.owned)
        await self._pause(answer.delay_ms)
        if not self.cancellation.is_set:
            started = retry_started(self._place, facts)
            await loop.log.append(fixed((started,)), owned=self.owned)
        return True

    async def _pause(self, delay_ms: int) -> None:
        """Wait, or return at once when the turn is cancelled."""
        if delay_ms > 0:
            waiting = asyncio.ensure_future(self.cancellation.wait())
            await asyncio.wait({waiting}, timeout=delay_ms / 1000)
            waiting.cancel()
