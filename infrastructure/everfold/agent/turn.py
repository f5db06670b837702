"""One open turn, stepped to its end; every boundary is stored before what follows from it.

The rule to keep: a model or a tool is asked only after everything that the question depends on
is stored, and only while the turn is still ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from everfold.agent import wishes
from everfold.agent.answering import Answering, Called, Closed, Ended
from everfold.agent.calling import Call, Outcome, ToolRunner, failed
from everfold.agent.cancelling import ProgramEndError, TurnCancellation
from everfold.agent.log import OwnedTurn, fixed
from everfold.agent.loop import Loop, log
from everfold.agent.opening import open_step
from everfold.agent.settling import result_wishes
from everfold.agent.tools import ToolContext
from everfold.llm.failure import LlmFailure
from everfold.session.deciding import AppendEvent
from everfold.session.errors import LosslessError, SessionError, TooLargeError
from everfold.session.frozen import Json
from everfold.session.session import Session

STEP_LIMIT = "STEP_LIMIT"


@dataclass(slots=True)
class TurnRun:
    """Runs one open turn to its end."""

    loop: Loop
    owned: OwnedTurn
    cancellation: TurnCancellation
    _answering: Answering = field(init=False)

    def __post_init__(self) -> None:
        self._answering = Answering(self.loop, self.owned, self.cancellation)

    async def run(self) -> None:
        """Step until the model has nothing more to do, or something ends the turn.

        Raises:
            TakenOverError: another process closed the turn.
            SessionError: the store failed; the turn is open, `Sessions.resume` closes it.
            ProgramEndError: a plugin wants to end the program; the turn was closed as interrupted.
        """
        step: int | None = 1
        while step is not None:
            try:
                settled = await self._answering.settle(step)
            except ProgramEndError:
                await self._interrupt(step)
                raise
            match settled:
                case Called(calls):
                    await self._call(step, calls)
                    step = await self._go_on(step)
                case Ended(reason):
                    await self._close(step, reason)
                    step = None
                case Closed(next_step):
                    step = next_step
                case _:
                    assert_never(settled)

    async def _close(self, step: int, reason: Mapping[str, Json]) -> None:
        end = (wishes.step_end(self.owned.turn, step), wishes.turn_end(self.owned.turn, reason))
        await self.loop.log.append(fixed(end), owned=self.owned)

    async def _interrupt(self, step: int) -> None:
        """Close the turn for a program that ends now, whatever becomes of that."""
        try:
            await self._close(step, {"kind": "interrupted"})
        except SessionError:
            turn, session_id = self.owned.turn, self.owned.session_id
            log.exception("turn %d of session %r stays open", turn, session_id)

    async def _go_on(self, step: int) -> int | None:
        """Close a step whose tools have answered, and open the next one."""
        if self.cancellation.reason is not None:
            await self._close(step, {"kind": "aborted", "reason": self.cancellation.reason})
            return None
        limit = self.loop.settings.limits.steps
        if step >= limit:
            text = f"the turn reached its limit of {limit} steps; say something to go on"
            await self._close(step, wishes.error_reason(LlmFailure(text, STEP_LIMIT)))
            return None
        turn = self.owned.turn

        def plan(session: Session) -> list[AppendEvent]:
            return [wishes.step_end(turn, step), *open_step(self.loop, session, turn, step + 1)]

        await self.loop.log.append(plan, owned=self.owned)
        return step + 1

    # Tools.

    async def _call(self, step: int, calls: Sequence[Call]) -> None:
        loop = self.loop
        runner = ToolRunner(
            loop.tools,
            loop.settings.limits,
            loop.admit,
            self.cancellation,
            lambda call_id: self._context(step, call_id),
        )

        async def settle(outcomes: Sequence[Outcome]) -> None:
            await self._settle_results(step, outcomes)

        await runner.run(calls, settle)

    def _context(self, step: int, call_id: str) -> ToolContext:
        owned = self.owned
        return ToolContext(owned.session_id, owned.turn, step, call_id, self.cancellation)

    async def _settle_results(self, step: int, outcomes: Sequence[Outcome]) -> None:
        """Store answers in one commit; one that the log refuses is replaced by saying so."""
        try:
            await self._store_results(step, outcomes)
        except (TooLargeError, LosslessError) as error:
            if len(outcomes) > 1:
                for outcome in outcomes:
                    await self._settle_results(step, (outcome,))
                return
            text = f"The tool's result could not be kept: {error}"
            refused = failed(outcomes[0].call, type(error).__name__, "RESULT_REFUSED", text)
            await self._store_results(step, (refused,))

    async def _store_results(self, step: int, outcomes: Sequence[Outcome]) -> None:
        place = {"turn": self.owned.turn, "step": step}
        new_id = self.loop.log.new_id
        batch = [wish for outcome in outcomes for wish in result_wishes(place, outcome, new_id())]
        await self.loop.log.append(fixed(batch), owned=self.owned)
