"""How long an answer is waited for: its beginning, its signs of life, and what it has to say.

Pings, comments and empty pieces keep an answer alive: a model may think for minutes and show nothing
of it. They do not keep it alive for ever.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from everfold.llm.chunks import Chunk, says_something
from everfold.llm.failure import FailureCode, LlmError, LlmFailure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds.

    Attributes:
        first_chunk_s: for the first bytes of an answer.
        idle_s: for further bytes, whatever they are.
        content_s: for something that the answer says, while there are signs of life.
    """

    first_chunk_s: float = 300
    idle_s: float = 300
    content_s: float = 900


class Patience:
    """Waits for one answer, in the running event loop."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._clock = asyncio.get_running_loop().time
        self._has_begun = False
        self._must_speak_by = 0.0
        self._waiting: asyncio.Timeout | None = None

    def hear(self) -> None:
        """Take note of a sign of life: bytes came."""
        if not self._has_begun:
            self._has_begun = True
            self._must_speak_by = self._clock() + self._timeouts.content_s
        if self._waiting is not None:
            self._waiting.reschedule(self._deadline())

    async def wait(self, step: Awaitable[T]) -> T:
        """Await the next step of the answer.

        Raises:
            LlmError: FIRST_CHUNK_TIMEOUT if the answer did not begin in time, TIMEOUT if it did
                not go on.
        """
        try:
            async with asyncio.timeout_at(self._deadline()) as self._waiting:
                return await step
        except TimeoutError as error:
            raise LlmError(self._lateness()) from error
        finally:
            self._waiting = None

    @contextmanager
    def handing_over(self, chunk: Chunk) -> Iterator[None]:
        """Stop the clock while whoever reads the answer has a chunk; begin anew if it says something."""
        began = self._clock()
        yield
        over = self._clock()
        is_word = says_something(chunk)
        self._must_speak_by = (
            over + self._timeouts.content_s if is_word else self._must_speak_by + over - began
        )

    def _deadline(self) -> float:
        now, limits = self._clock(), self._timeouts
        if not self._has_begun:
            return now + limits.first_chunk_s
        return min(now + limits.idle_s, self._must_speak_by)

    def _lateness(self) -> LlmFailure:
        limits = self._timeouts
        if not self._has_begun:
            text = f"no answer within {limits.first_chunk_s:g} s"
            return LlmFailure(text, FailureCode.FIRST_CHUNK_TIMEOUT)
        if self._clock() >= self._must_speak_by:
            text = f"nothing but signs of life came within {limits.content_s:g} s"
            return LlmFailure(text, FailureCode.TIMEOUT)
        return LlmFailure(f"no answer within {limits.idle_s:g} s", FailureCode.TIMEOUT)


def listen(response: Any, heard: Callable[[], None]) -> None:
    """Have `heard` called whenever bytes of an answer come, also such as the SDK passes over.

    Args:
        response: of the SDKs' HTTP library, its body not read yet.
    """
    from httpx2 import AsyncByteStream

    class Heard(AsyncByteStream):
        """A body as it comes."""

        def __init__(self, body: Any) -> None:
            self._body = body

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._body:
                heard()
                yield piece

        async def aclose(self) -> None:
            await self._body.aclose()

    response.stream = Heard(response.stream)
