"""One attempt to get an answer: prepare, stream, and stop for a failure, a cancellation or a limit."""

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from everfold.agent.cancelling import TurnCancellation, start, stop, until_cancelled
from everfold.agent.settings import Limits
from everfold.llm.assembly import Answer, Assembler, mended_failure
from everfold.llm.chunks import Chunk, Finish, says_something
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import LlmRequest, Prepared, Route
from everfold.session.ports import Clock


@dataclass(slots=True)
class Attempt:
    """What became of one attempt.

    Attributes:
        failure: why there is no answer; None for an answer, also for one that was cut short.
        was_cancelled: whether the turn was asked to stop meanwhile.
        was_cut: whether the answer went on beyond the limit and was cut there.
        is_repeat: whether it was not sent, being the very request that was refused before (A6).
        prepared: the wire form; None if there never was one.
        spoken_at: when the answer last said something, by the event loop's clock; None before.
    """

    assembler: Assembler = field(default_factory=Assembler)
    failure: LlmFailure | None = None
    was_cancelled: bool = False
    was_cut: bool = False
    is_repeat: bool = False
    prepared: Prepared | None = None
    spoken_at: float | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether the stream did not run to its own end."""
        return self.was_cancelled or self.was_cut

    def answer(self) -> Answer:
        """Return what arrived."""
        return self.assembler.answer(is_whole=not self.is_interrupted)


@dataclass(slots=True)
class Attempting:
    """Makes attempts on one route.

    Attributes:
        refused: what the provider refused last; it is not sent again (A6).
        on_chunk: is told of each piece as it is recorded.
        point: names the images of a failure in the session.
    """

    route: Route
    limits: Limits
    cancellation: TurnCancellation
    clock: Clock
    on_chunk: Callable[[Chunk], None]
    refused: Prepared | None = None
    point: Callable[[LlmFailure], LlmFailure] = lambda failure: failure

    async def run(self, request: LlmRequest) -> Attempt:
        """Ask the model once; never raises for what the route does."""
        attempt = Attempt()
        work = start(self._ask(request, attempt), "model request")
        try:
            await self._watch(work, attempt)
        finally:
            if not work.done():
                await stop(work, self.limits.grace_s)
        self._settle(attempt)
        return attempt

    async def _watch(self, work: "asyncio.Task[None]", attempt: Attempt) -> None:
        """Wait for the answer; stop it when it says nothing for too long, or somebody asks."""
        clock, limits = asyncio.get_running_loop().time, self.limits
        began = clock()
        while not work.done():
            first = attempt.spoken_at is None
            patience = limits.first_chunk_timeout_s if first else limits.chunk_timeout_s
            spoken_at = began if attempt.spoken_at is None else attempt.spoken_at
            left = spoken_at + patience - clock()
            if left <= 0:
                attempt.failure = _silence(first=first, patience_s=patience)
                break
            # The answer may begin meanwhile, and have less time from then on.
            await until_cancelled(work, self.cancellation, min(left, limits.chunk_timeout_s))
            if self.cancellation.is_set and not work.done():
                attempt.was_cancelled = True
                break

    async def _ask(self, request: LlmRequest, attempt: Attempt) -> None:
        try:
            attempt.prepared = await self.route.prepare(request)
            if self.refused is not None and attempt.prepared.body == self.refused.body:
                attempt.is_repeat = True
                return
            await self._stream(attempt.prepared, attempt)
        except LlmError as error:
            attempt.failure = self.point(mended_failure(error.failure))
        except Exception as error:  # noqa: BLE001  # a stranger's route may raise anything
            attempt.failure = LlmFailure(_whereabouts(error), FailureCode.UNKNOWN)

    async def _stream(self, prepared: Prepared, attempt: Attempt) -> None:
        stream = self.route.stream(prepared)
        try:
            async for chunk in stream:
                if says_something(chunk):
                    attempt.spoken_at = asyncio.get_running_loop().time()
                for recorded in attempt.assembler.add(chunk, self.clock()):
                    self.on_chunk(recorded)
                if isinstance(chunk, Finish):
                    return
                if attempt.assembler.size > self.limits.answer_chars:
                    attempt.was_cut = True
                    return
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def _settle(self, attempt: Attempt) -> None:
        """Make the stream end with a finish, and say what it amounts to."""
        finish = attempt.assembler.finish
        if attempt.was_cancelled:
            # What the route raised while it was being stopped is no failure of the model.
            attempt.failure = None
        if attempt.is_repeat:
            return
        if finish is not None and attempt.failure is None:
            attempt.failure, attempt.was_cancelled = _verdict(finish, attempt)
        elif attempt.failure is None and not attempt.is_interrupted:
            attempt.failure = LlmFailure("the answer broke off", FailureCode.TRANSPORT)
        if finish is None:
            for recorded in attempt.assembler.add(_last(attempt), self.clock()):
                self.on_chunk(recorded)


def _verdict(finish: Finish, attempt: Attempt) -> tuple[LlmFailure | None, bool]:
    if finish.kind == "aborted":
        return None, True
    if finish.kind == "error":
        unknown = LlmFailure("the provider reported an error", FailureCode.UNKNOWN)
        return finish.failure or unknown, attempt.was_cancelled
    if not attempt.answer().content:
        return LlmFailure("the answer is empty", FailureCode.EMPTY_RESPONSE), False
    return None, attempt.was_cancelled


def _last(attempt: Attempt) -> Finish:
    if attempt.was_cancelled:
        return Finish("aborted", LlmFailure("cancelled", FailureCode.CANCELLED))
    if attempt.was_cut:
        return Finish("max-tokens")
    return Finish("error", attempt.failure)


def _silence(*, first: bool, patience_s: float) -> LlmFailure:
    code = FailureCode.FIRST_CHUNK_TIMEOUT if first else FailureCode.TIMEOUT
    what = "no answer began" if first else "the answer did not go on"
    return LlmFailure(f"{what} within {patience_s:g} seconds", code)


def _whereabouts(error: Exception) -> str:
    """Return the kind of an unexpected error and its place; its text might hold a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    return f"the route raised {type(error).__name__}{place}"
