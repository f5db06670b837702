"""The engine: select, lock, summarise, recover within the selection, commit in one batch (group T).

The rule to keep: the decision about a failed or finished summary, and the check that the history it
was made of still stands, are adjacent, with no waiting between them (R276).
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from everfold.llm.chunks import Usage
from everfold.llm.failure import FailureCode, LlmError
from everfold.plugins.waterfalls import SummaryErrorQuestion, Waterfalls, ask_now
from everfold.projections.compaction import wishes
from everfold.projections.compaction.answers import Summary, check_wanted
from everfold.projections.compaction.bracket import Bracket
from everfold.projections.compaction.errors import CompactionCancelledError, CompactionSummaryError
from everfold.projections.compaction.job import CompactionWish, Job, Model, RouteOf
from everfold.projections.compaction.progress import Progress
from everfold.projections.compaction.retrying import IMPATIENT, Patience, SummaryRetry
from everfold.projections.compaction.selection import PricedSurface, select
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.token_meter.prices import content_price
from everfold.session.access import SessionAccess
from everfold.session.session import Session

MAX_RECOVERIES = 50
_SHARE_BEFORE, _SHARE_AFTER_OVERFLOW = 4, 8
"""One part in so many of the context window may be kept as it is."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A summary took the place of older messages.

    Attributes:
        seq: the message that holds it.
        hidden: the nodes that it stands for.
        tokens_before: what they cost on the route.
        tokens_after: what the summary costs.
        passes: how many requests it took.
        usage: of all of them.
    """

    compaction_id: str
    seq: int
    hidden: tuple[int, ...]
    tokens_before: int
    tokens_after: int
    passes: int
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """Nothing was summarised, and no model was asked (D5, D12).

    Attributes:
        reason: for people.
    """

    reason: str


Outcome = Compacted | NothingToDo


@dataclass(frozen=True, slots=True)
class Compactor:
    """Summarises the older part of conversations.

    Attributes:
        route_of: the routes that may be asked.
        waterfalls: its summary-error chain is asked when a summary request fails.
        patience: with which requests are sent again that failed for reasons that may pass.
    """

    route_of: RouteOf
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    waterfalls: Waterfalls = field(default_factory=Waterfalls)
    patience: Patience = IMPATIENT

    async def compact(self, access: SessionAccess, wish: CompactionWish) -> Outcome:
        """Replace the older part of a conversation by a summary, or say why there is none.

        Others may append meanwhile; nothing of theirs is refused or lost. If the calling task is
        cancelled, the lock is freed before the cancellation goes on.

        Raises:
            CompactionError: no summary was stored; its code says why (R288). Images that were
                omitted meanwhile stay omitted (R278).
            SessionError: the session cannot be read.
        """
        job = await access.aside(lambda: self.plan(access.view(), wish))
        if isinstance(job, NothingToDo):
            return job
        held: list[Bracket] = []
        progress = Progress(job, self.settings)
        try:
            await access.aside(partial(_open, held, access, wish, progress))
            job, summary = await self._summary(access, held[0], progress)
            check_wanted(wish.cancellation)
            return await access.aside(partial(_commit, access, held[0], job, summary))
        except BaseException as error:
            failure = _failure_of(error)
            if held:
                await _freed(access, held[0], failure)
            if failure is error:
                raise
            raise failure from error

    def plan(self, session: Session, wish: CompactionWish) -> Job | NothingToDo:
        """Return what would be summarised now, or why there is nothing.

        Raises:
            CompactionError: nothing says which model is to summarise.
        """
        model = Model.of(session, wish, self.settings, self.route_of)
        surface = PricedSurface.of(session, model.pricing)
        span = select(
            surface,
            self._keep_tokens(wish, model.window, surface),
            self.settings.min_span_tokens,
            keeps_turn=not wish.is_automatic,
        )
        if isinstance(span, str):
            return NothingToDo(span)
        return Job(wish, surface, span, model, self.settings.input_limit(model.window))

    def _keep_tokens(self, wish: CompactionWish, window: int | None, surface: PricedSurface) -> int:
        """Return how much of the end may stay; less of it after an overflow than before one."""
        if wish.trigger == "overflow":
            size = surface.price(0, len(surface.nodes)) if window is None else window
            return min(self.settings.keep_tokens, size // _SHARE_AFTER_OVERFLOW)
        if window is None:
            return self.settings.keep_tokens
        return min(self.settings.keep_tokens, window // _SHARE_BEFORE)

    async def _summary(
        self, access: SessionAccess, bracket: Bracket, progress: Progress
    ) -> tuple[Job, Summary]:
        """Return the summary, and the job as it was when the summary was made (R274, R275)."""
        recoveries, cancellation = 0, progress.job.wish.cancellation
        while True:
            check_wanted(cancellation)
            try:
                return progress.job, await progress.finish(access, bracket)
            except LlmError as error:
                check_wanted(cancellation)
                changed = await access.aside(partial(self._recovered, access, progress.job, error))
                if changed is None:
                    await self._pause(access, bracket, progress, error)
                    continue
                recoveries += 1
                if recoveries > MAX_RECOVERIES:
                    raise
                progress = Progress(changed, self.settings, progress.retries)

    def _recovered(self, access: SessionAccess, job: Job, error: LlmError) -> Job | None:
        """Return the job to go on with; whoever can shortens the selected history (R271 to R276).

        Returns:
            None if nobody recovered.

        Raises:
            CompactionChangedError: the selected history changed.
        """
        job = job.check_stands(access.view())
        question = SummaryErrorQuestion(access, job.seqs, error, job.wish.cancellation)
        if ask_now(self.waterfalls.summary_error, question, default=False):
            return job.on(access.view())
        if error.failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED:
            return job.halved()
        return None

    async def _pause(
        self, access: SessionAccess, bracket: Bracket, progress: Progress, error: LlmError
    ) -> None:
        """Wait before the same request is sent again, and say so in the log first.

        Raises:
            LlmError: it is not sent again: the failure will not pass, or the budget is spent.
            CompactionChangedError: the lock was freed meanwhile.
        """
        patience, job = self.patience, progress.job
        delay_ms = patience.policy.delay_ms(error.failure, progress.retries, patience.jitter)
        if delay_ms is None:
            raise error
        progress.retries += 1
        provider, most = str(job.model.config["provider"]), patience.policy.max_retries
        retry = SummaryRetry(provider, progress.retries, most, delay_ms, error.failure)
        await access.aside(partial(bracket.note_retry, access, retry))
        await patience.pause(delay_ms, job.wish.cancellation)


def _open(
    held: list[Bracket], access: SessionAccess, wish: CompactionWish, progress: Progress
) -> None:
    """Take the lock and put it into `held`, where it is found also by a task that was cancelled."""
    held.append(Bracket.open(access, wish, progress.next_request))


async def _freed(access: SessionAccess, bracket: Bracket, failure: BaseException) -> None:
    """Free the lock, also for a cancelled task, and for one that is thrown away."""
    if isinstance(failure, GeneratorExit):
        # Such a coroutine may not wait any more.
        bracket.close(access, failure)
    else:
        await access.aside(partial(bracket.close, access, failure))


def _commit(access: SessionAccess, bracket: Bracket, job: Job, summary: Summary) -> Compacted:
    """Store summary, replacement and end as one batch, if the history still stands (D10).

    Raises:
        CompactionError: the summary is not cheaper, the history changed, or it was not stored.
    """
    content = wishes.framed(summary.blocks)
    after = content_price(content) + 4
    if after >= job.price:
        raise CompactionSummaryError(
            f"the summary takes {after} tokens, the messages themselves {job.price}; it is not used"
        )
    facts: dict[str, Any] = {
        "summary": list(summary.blocks),
        "provider": job.model.config["provider"],
        "model": job.model.config["model"],
        "maxTokens": job.model.config["maxTokens"],
        "rawOutput": list(summary.raw),
        "llmStreamCall": True,
    }
    if summary.usage is not None:
        facts["usage"] = summary.usage.to_json()
    message = next(
        event
        for event in bracket.commit(access, job, content, facts)
        if event.type == "user/message"
    )
    return Compacted(
        compaction_id=message.data["source"]["compactionId"],
        seq=message.seq,
        hidden=job.seqs,
        tokens_before=job.price,
        tokens_after=after,
        passes=summary.passes,
        usage=summary.usage,
    )


def _failure_of(error: BaseException) -> BaseException:
    """Return the compaction's own failure for one of a provider; others as they are."""
    if isinstance(error, LlmError):
        if error.failure.code == FailureCode.CANCELLED:
            return CompactionCancelledError(
                "the summary request was cancelled", failure=error.failure
            )
        return CompactionSummaryError(
            f"the summary request failed: {error.failure.message} ({error.failure.code})",
            failure=error.failure,
        )
    return error
