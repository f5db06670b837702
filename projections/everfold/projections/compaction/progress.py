"""How far one summary has got: the passes that are done, and the request that is under way."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from everfold.llm.route import LlmRequest
from everfold.projections.compaction import wishes
from everfold.projections.compaction.answers import Block, Summary, asked, check_wanted, together
from everfold.projections.compaction.bracket import Bracket
from everfold.projections.compaction.errors import CompactionSummaryError
from everfold.projections.compaction.job import Job
from everfold.projections.compaction.requests import SummaryInput, Unit, passes
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.compaction.summary_request import SummaryRequest
from everfold.projections.compaction.wishes import Names
from everfold.session.access import SessionAccess
from everfold.session.deciding import AppendEvent
from everfold.session.session import Session


@dataclass(frozen=True, slots=True)
class Pass:
    """A request that is logged.

    Attributes:
        end: how many of the selected nodes are summarised when it is answered.
        is_last: whether these are all of them.
    """

    request: LlmRequest
    end: int
    is_last: bool


@dataclass(slots=True)
class Progress:
    """Makes one summary, in as many passes as the model's window needs (D13).

    Each request is logged before it is sent, and made of what is logged.

    Attributes:
        retries: how often the request under way was sent again.
    """

    job: Job
    settings: CompactionSettings
    retries: int = 0
    _under_way: Pass | None = None
    _done: Pass | None = None
    _summary: Summary | None = None

    async def finish(self, access: SessionAccess, bracket: Bracket) -> Summary:
        """Go on from where a request failed last, to the end.

        Raises:
            LlmError: a request failed; the passes before it are done.
            CompactionSummaryError: an answer is no summary, or it takes too many requests.
            CompactionCancelledError: somebody asked to stop.
            CompactionError: the next request could not be logged, and was not sent.
        """
        route, cancellation = self.job.model.route, self.job.wish.cancellation
        while self._summary is None or self._done is None or not self._done.is_last:
            if self._under_way is None:
                check_wanted(cancellation)
                await access.aside(partial(bracket.note_request, access, self.next_request))
            assert self._under_way is not None, "it was logged"
            self._note(self._under_way, await asked(route, self._under_way.request, cancellation))
        return self._summary

    def next_request(self, session: Session, names: Names) -> AppendEvent:
        """Return the wish to log the next request, which is made of it and of the session as it is.

        Raises:
            CompactionChangedError: the selected history changed.
            CompactionSummaryError: hardly anything fits, or there may be no further pass.
        """
        carried, done = self._carried(), 0 if self._done is None else self._done.end
        job = self.job.check_stands(session)
        made_of = job.input(session.id, names.compaction_id, self.settings.prompt, done)
        taken = tuple(passes(made_of, made_of.units, carried))
        logged = self._logged(job, made_of, taken, names)
        end = taken[-1].end
        self._under_way = Pass(logged.on(session), end, end == made_of.units[-1].end)
        return wishes.request(logged.fields())

    def _logged(
        self, job: Job, made_of: SummaryInput, taken: Sequence[Unit], names: Names
    ) -> SummaryRequest:
        return SummaryRequest(
            compaction_id=names.compaction_id,
            source_command_id=names.command_id,
            number=1 if self._summary is None else self._summary.passes + 1,
            config=made_of.config,
            with_prompt=bool(made_of.head),
            with_tools=bool(made_of.tools),
            start=job.seqs[taken[0].start],
            end=job.seqs[taken[-1].end - 1],
            pictures_named=any(unit.names_pictures for unit in taken),
            shortened=taken[0].ends,
            carried=self._carried(),
            instruction=made_of.instruction,
        )

    def _carried(self) -> Sequence[Block]:
        """Return what the passes before have come to.

        Raises:
            CompactionSummaryError: there may be no further pass.
        """
        if self._summary is None:
            return ()
        if self._summary.passes == self.settings.max_passes:
            raise CompactionSummaryError(
                f"the summary would take more than {self.settings.max_passes} requests; "
                "choose a model with a larger context window"
            )
        return self._summary.blocks

    def _note(self, done: Pass, fresh: Summary) -> None:
        before = self._summary
        usage = fresh.usage if before is None else together(before.usage, fresh.usage)
        number = 1 if before is None else before.passes + 1
        self._summary = Summary(fresh.blocks, fresh.raw, usage, number)
        self._done, self._under_way, self.retries = done, None, 0
