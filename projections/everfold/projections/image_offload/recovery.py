"""Recovery from a request with too many images: one logged omission, then the request again (groups S and T)."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from everfold.llm.failure import FailureCode, LlmFailure
from everfold.plugins.waterfalls import (
    RequestErrorAnswer,
    RequestErrorQuestion,
    Retry,
    SummaryErrorQuestion,
)
from everfold.projections.image_offload.selection import oldest_images
from everfold.session.access import SessionAccess
from everfold.session.deciding import AppendEvent
from everfold.session.session import Session


async def recover_request(
    question: RequestErrorQuestion, ask_next: Callable[[], Awaitable[RequestErrorAnswer]]
) -> RequestErrorAnswer:
    """Omit as many of the oldest images as the failure asks for, and have the request sent again.

    Every other failure, and one that no omission can help any more, is passed on (R262 to R265).
    """
    count = required_count(question.failure)
    if count is None:
        return await ask_next()
    access = question.session
    has_omitted = await access.aside(partial(omit_oldest, access, count))
    return Retry(spends_budget=False) if has_omitted else await ask_next()


def recover_summary(question: SummaryErrorQuestion, ask_next: Callable[[], bool]) -> bool:
    """Omit the oldest images among the selected events, and say whether anything was omitted.

    Only a real failure counts; after a cancellation nothing is decided (R272, R273).
    """
    failure = question.failure
    count = None if failure is None else required_count(failure)
    if count is None:
        return ask_next()
    if question.cancellation.is_set:
        return False
    return omit_oldest(question.session, count, selection=question.selection) or ask_next()


def required_count(failure: LlmFailure) -> int | None:
    """Return how many more images a failure wants omitted, None if it is another failure (R262)."""
    if failure.code != FailureCode.IMAGE_OFFLOAD_REQUIRED:
        return None
    return failure.offload_images


def omit_oldest(
    access: SessionAccess, count: int, *, selection: Sequence[int] | None = None
) -> bool:
    """Store one event that omits the oldest retained input images; False if none is left (R231 to R233).

    After a lost race the choice is made again on the new history.

    Args:
        selection: the seqs to choose from, in this order; the current nodes if None.
    """

    def plan(session: Session) -> list[AppendEvent]:
        wish = oldest_images(session, count, selection=selection)
        return [] if wish is None else [wish]

    # A plan is made on what the host has in memory: bring that up to date first.
    access.view()
    return bool(access.append(plan))
