"""Omission ahead of a rejection, by the route's own arithmetic and quanta (V6)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from everfold.llm.budgets import ImageBudget, UnavoidableExcessError, required_beside
from everfold.llm.images import retained_lengths, stored_bytes
from everfold.plugins.waterfalls import PreStepAnswer, PreStepQuestion
from everfold.projections.image_offload.projection import INPUT_TYPES
from everfold.projections.image_offload.recovery import omit_oldest
from everfold.session.access import SessionAccess
from everfold.session.session import Session

LengthOf = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Planner:
    """Omits images before a request that its route would refuse, so that no attempt is spent.

    Attributes:
        length_of: the bytes of the version of an image that the route sends.
    """

    length_of: LengthOf = stored_bytes

    async def before_step(
        self, question: PreStepQuestion, ask_next: Callable[[], Awaitable[PreStepAnswer]]
    ) -> PreStepAnswer:
        """Make the omission that the coming request needs, if it needs one; then ask on."""
        budget = None if question.capabilities is None else question.capabilities.budget
        if budget is not None and not question.cancellation.is_set:
            await question.session.aside(partial(self._omit_excess, question.session, budget))
        return await ask_next()

    def _omit_excess(self, access: SessionAccess, budget: ImageBudget) -> None:
        count = self.excess(access.view(), budget)
        if count:
            omit_oldest(access, count)

    def excess(self, session: Session, budget: ImageBudget) -> int:
        """Return how many of the oldest images must go before the next request.

        0 also when no omission can help, since the images that a model made fill the budget
        alone: the route then says so (V7).
        """
        removable: list[Any] = []
        fixed: list[Any] = []
        for seq, message in session.messages().items():
            (removable if _is_input(session, seq) else fixed).append(message["content"])
        lengths = retained_lengths(removable, self.length_of)
        staying = retained_lengths(fixed, self.length_of)
        try:
            return required_beside(lengths, staying, budget)
        except UnavoidableExcessError:
            return 0


def _is_input(session: Session, seq: int) -> bool:
    event = session.event(seq)
    return event is not None and event.type in INPUT_TYPES
