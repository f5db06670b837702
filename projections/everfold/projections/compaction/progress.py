"""How far one summary has got: the passes that are done, and what is left to be summarised."""

from collections.abc import Sequence
from dataclasses import dataclass

from everfold.llm.route import Route
from everfold.plugins.waterfalls import Cancellation
from everfold.projections.compaction.answers import Block, Summary, asked, together
from everfold.projections.compaction.errors import CompactionSummaryError
from everfold.projections.compaction.requests import SummaryInput, Unit, passes


@dataclass(slots=True)
class Progress:
    """Makes one summary, in as many passes as the model's window needs (D13).

    Attributes:
        left: what no pass has summarised yet.
        retries: how often the request of the next pass was sent again.
    """

    made_of: SummaryInput
    max_passes: int
    left: tuple[Unit, ...]
    retries: int = 0
    _summary: Summary | None = None

    @classmethod
    def of(cls, made_of: SummaryInput, max_passes: int, retries: int = 0) -> "Progress":
        """Return the beginning."""
        return cls(made_of, max_passes, made_of.units, retries)

    async def finish(self, route: Route, cancellation: Cancellation) -> Summary:
        """Go on from where a request failed last, to the end.

        Raises:
            LlmError: a request failed; the passes before it are done.
            CompactionSummaryError: an answer is no summary, or it takes too many requests.
            CompactionCancelledError: somebody asked to stop.
        """
        while self.left:
            taken = tuple(passes(self.made_of, self.left, self._carried()))
            request = self.made_of.request(taken, self._carried())
            self._note(await asked(route, request, cancellation), len(taken))
        assert self._summary is not None, "a selection that costs something has messages"
        return self._summary

    def _carried(self) -> Sequence[Block]:
        """Return what the passes before have come to.

        Raises:
            CompactionSummaryError: there may be no further pass.
        """
        if self._summary is None:
            return ()
        if self._summary.passes == self.max_passes:
            raise CompactionSummaryError(
                f"the summary would take more than {self.max_passes} requests; "
                "choose a model with a larger context window"
            )
        return self._summary.blocks

    def _note(self, fresh: Summary, count: int) -> None:
        before = self._summary
        usage = fresh.usage if before is None else together(before.usage, fresh.usage)
        number = 1 if before is None else before.passes + 1
        self._summary = Summary(fresh.blocks, fresh.raw, usage, number)
        self.left, self.retries = self.left[count:], 0
