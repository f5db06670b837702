"""Reading a summary from a route, and refusing one that is none (R284, D7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everfold.llm.assembly import Answer, Assembler
from everfold.llm.chunks import Usage
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import LlmRequest, Route
from everfold.plugins.waterfalls import Cancellation
from everfold.projections.compaction.errors import (
    CompactionCancelledError,
    CompactionSummaryError,
)

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that can be used.

    Attributes:
        blocks: its text blocks.
        raw: all that the model answered.
        usage: of every pass together; None if no provider counted.
        passes: how many requests it took.
    """

    blocks: tuple[Block, ...]
    raw: tuple[Block, ...]
    usage: Usage | None
    passes: int = 1


async def asked(route: Route, request: LlmRequest, cancellation: Cancellation) -> Summary:
    """Return the summary that a model gives.

    Raises:
        LlmError: the request failed, or its answer broke off.
        CompactionSummaryError: the answer is no summary.
        CompactionCancelledError: somebody asked to stop.
    """
    check_wanted(cancellation)
    prepared = await route.prepare(request)
    assembler = Assembler()
    stream = route.stream(prepared)
    try:
        async for chunk in stream:
            check_wanted(cancellation)
            assembler.add(chunk, 0)
    finally:
        # Closing the iterator cancels the request; one that is no generator has nothing to close.
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    return usable(assembler.answer())


def check_wanted(cancellation: Cancellation) -> None:
    """Stop if somebody asked to.

    Raises:
        CompactionCancelledError: somebody did.
    """
    if cancellation.is_set:
        raise CompactionCancelledError("the compaction was cancelled; older messages are in place")


def usable(answer: Answer) -> Summary:
    """Return the summary that an answer holds: its text blocks (R284).

    Raises:
        LlmError: the answer failed, broke off, or is empty.
        CompactionSummaryError: it was cut off by the token limit, holds images, or no text.
    """
    finish = answer.finish
    if finish is None:
        raise _failed("the answer broke off before its end")
    if finish.kind in ("error", "aborted"):
        raise LlmError(finish.failure) if finish.failure else _failed(f"it ended as {finish.kind}")
    if finish.kind == "max-tokens":
        raise CompactionSummaryError("the summary was cut off by the token limit; it is not used")
    if not answer.content:
        raise LlmError(LlmFailure("the answer is empty", FailureCode.EMPTY_RESPONSE))
    kinds = [block.get("type") for block in answer.content]
    if "image" in kinds:
        raise CompactionSummaryError("the summary holds an image; it is not used")
    blocks = [block for block in answer.content if block.get("type") == "text"]
    if not any(str(block.get("text", "")).strip() for block in blocks):
        held = ", ".join(sorted({str(kind) for kind in kinds} - {"text"})) or "blanks at most"
        raise CompactionSummaryError(f"the summary holds no words, but {held}; it is not used")
    return Summary(tuple(blocks), answer.content, answer.usage)


def _failed(reason: str) -> LlmError:
    return LlmError(LlmFailure(reason, FailureCode.MALFORMED_RESPONSE))


def together(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the token counts of two requests together."""
    if one is None or other is None:
        return other if one is None else one
    names = Usage.__dataclass_fields__
    counts = {name: _sum(getattr(one, name), getattr(other, name)) for name in names}
    return Usage(**counts)


def _sum(one: int | None, other: int | None) -> Any:
    return None if one is None and other is None else (one or 0) + (other or 0)
