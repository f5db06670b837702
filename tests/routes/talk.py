"""Talks to a route as the agent loop does, and remembers every request that it sends."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from everfold.llm.chunks import Chunk, Finish, Usage
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import LlmRequest, Prepared, Route
from everfold.llm.stream import TimedChunk, pack, unpack
from tests.routes.kit import Json, offloaded, request


@dataclass
class Talk:
    """One route, and what was sent through it.

    Attributes:
        dispatched: every request that was handed to `stream`, in order.
    """

    route: Route
    dispatched: list[Prepared] = field(default_factory=list)

    def ask(self, asked: LlmRequest) -> list[Chunk]:
        """Prepare, send, and return the chunks."""
        return asyncio.run(self._asking_alone(asked))

    async def asking(self, asked: LlmRequest) -> list[Chunk]:
        """As `ask`, inside a running event loop."""
        prepared = await self.route.prepare(asked)
        self.dispatched.append(prepared)
        return [chunk async for chunk in self.route.stream(prepared)]

    async def _asking_alone(self, asked: LlmRequest) -> list[Chunk]:
        try:
            return await self.asking(asked)
        finally:
            await cast(Any, self.route).close()

    def failure(self, asked: LlmRequest) -> LlmFailure:
        """Return how a request fails.

        Raises:
            AssertionError: it does not.
        """
        try:
            self.ask(asked)
        except LlmError as error:
            return error.failure
        raise AssertionError("the request did not fail")

    def recovered(self, messages: Sequence[Json], limit: int = 10, **more: Any) -> list[Json]:
        """Ask, omit what the route says must go, ask again; return the messages that were accepted."""
        current = list(messages)
        for _ in range(limit):
            try:
                self.ask(request(*current, **more))
            except LlmError as error:
                failure = error.failure
                if failure.is_retryable:
                    continue
                assert failure.code == FailureCode.IMAGE_OFFLOAD_REQUIRED, failure
                assert failure.offload_images
                current = offloaded(current, failure.offload_images)
            else:
                return current
        raise AssertionError(f"no answer after {limit} requests")

    async def left_after_one(self, asked: LlmRequest) -> Chunk:
        """Return the first chunk, and close the iterator then."""
        prepared = await self.route.prepare(asked)
        self.dispatched.append(prepared)
        stream = cast(Any, self.route.stream(prepared))
        async with aclosing(stream):
            chunk: Chunk = await anext(stream)
        return chunk


Talking = Callable[[Route], Talk]
"""Wraps a route in a talk whose dispatched bodies are checked against those received."""


def blocks(chunks: Sequence[Chunk]) -> list[Json]:
    """Return the blocks of an answer, after a round trip through the log's form of its stream."""
    timed = [TimedChunk(at, chunk) for at, chunk in enumerate(chunks)]
    assert unpack(orjson.loads(orjson.dumps(pack(timed)))) == timed
    return [dict(chunk.block) for chunk in chunks if hasattr(chunk, "block")]


def finish(chunks: Sequence[Chunk]) -> Finish:
    """Return the last chunk, which says why the answer ended."""
    last = chunks[-1]
    assert isinstance(last, Finish)
    return last


def usage(chunks: Sequence[Chunk]) -> Usage:
    """Return the usage of an answer."""
    (found,) = (chunk for chunk in chunks if isinstance(chunk, Usage))
    return found
