"""When tool results are shortened: seldom, and then many at once.

Each pass changes the prefix that providers keep in their caches, so a pass waits until it saves
enough. Results that the model has not answered yet are left alone.
"""

import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from everfold.llm.failure import FailureCode
from everfold.plugins.waterfalls import (
    PreStepAnswer,
    PreStepQuestion,
    RequestErrorAnswer,
    RequestErrorQuestion,
    Retry,
)
from everfold.projections.tool_result_pruner.cutting import PruneLimits
from everfold.projections.tool_result_pruner.pruning import Cut, cut_of, cuts, prune
from everfold.session.access import SessionAccess
from everfold.session.session import Session

_REMEMBERED = 256
"""Sessions whose results are not looked at again before each step."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the first nodes of a session would save, as long as none of them is replaced."""

    generation: int
    count: int
    saving: int


@dataclass(frozen=True, slots=True)
class Pruner:
    """Shortens tool results before a step, and after a request that was too long.

    Attributes:
        min_saving: tokens that a pass before a step must save together.
    """

    limits: PruneLimits = field(default_factory=PruneLimits)
    min_saving: int = 20_000
    _seen: dict[str, _Seen] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    async def before_step(
        self, question: PreStepQuestion, ask_next: Callable[[], Awaitable[PreStepAnswer]]
    ) -> PreStepAnswer:
        """Shorten what the model has answered already, if that saves enough; then ask on."""
        if not question.cancellation.is_set:
            await question.session.aside(partial(self._shorten_answered, question.session))
        return await ask_next()

    async def after_overflow(
        self, question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
    ) -> RequestErrorAnswer:
        """Shorten every long result after a context overflow, and have the request sent again.

        Other failures, and an overflow that shortening hardly helps, are passed on.
        """
        is_overflow = question.failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
        if is_overflow and not question.cancellation.is_set:
            access = question.session
            if await access.aside(partial(self._shorten_all, access)):
                return Retry(spends_budget=False)
        return await ask_next()

    def _shorten_answered(self, access: SessionAccess) -> None:
        session = access.view()
        count = _answered(session)
        if self._saving_of_first(session, count) >= self.min_saving:
            before = session.nodes[count] if count < len(session.nodes) else None
            found = cuts(session, self.limits, before=before)
            prune(access, [cut.seq for cut in found], self.limits)

    def _shorten_all(self, access: SessionAccess) -> bool:
        """Shorten every long result; False if that would hardly help."""
        found = cuts(access.view(), self.limits)
        seqs = [cut.seq for cut in found]
        return _saving(found) >= self.min_saving and prune(access, seqs, self.limits) > 0

    def _saving_of_first(self, session: Session, count: int) -> int:
        """Return what shortening the first nodes would save, looking at each node once."""
        with self._lock:
            seen = self._seen.pop(session.id, None)
        generation = session.replace_generation
        if seen is None or seen.generation != generation or seen.count > count:
            seen = _Seen(generation, 0, 0)
        fresh = [cut_of(session, seq, self.limits) for seq in session.nodes[seen.count : count]]
        saving = seen.saving + sum(cut.saved for cut in fresh if cut is not None)
        with self._lock:
            self._seen[session.id] = _Seen(generation, count, saving)
            while len(self._seen) > _REMEMBERED:
                del self._seen[next(iter(self._seen))]
        return saving


def _saving(found: list[Cut]) -> int:
    return sum(cut.saved for cut in found)


def _answered(session: Session) -> int:
    """Return how many nodes stand up to the newest answer, it included."""
    nodes = session.nodes
    for place in range(len(nodes) - 1, -1, -1):
        event = session.event(nodes[place])
        if event is not None and event.type == "assistant/message":
            return place + 1
    return 0
