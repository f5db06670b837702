"""A route that plays recorded answers again, in order, and refuses a request that was not recorded so."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everfold.llm.chunks import Chunk
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.images import is_omitted
from everfold.llm.route import Capabilities, LlmRequest, Prepared
from everfold.llm.stream import TimedChunk, unpack
from everfold.session.events import EventLike
from everfold.session.frozen import Json, json_equal

SETTLEMENTS = ("assistant/message", "assistant/attempt")
IMAGE_TOKENS = 85


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request and what came back.

    Attributes:
        stream: the answer's timed chunks; the last one is its finish.
        body: the request as it was sent; None to accept any.
    """

    stream: tuple[TimedChunk, ...]
    body: Mapping[str, Json] | None = None


def exchanges_of(events: Iterable[EventLike]) -> list[Exchange]:
    """Return the answers that a log recorded, failed attempts included, in order.

    Raises:
        StreamRecordError: a recorded stream is malformed.
    """
    return [
        Exchange(tuple(unpack(event.data["stream"])))
        for event in events
        if event.type in SETTLEMENTS
    ]


@dataclass(slots=True)
class ReplayRoute:
    """Plays exchanges, one for each request; failures are part of the recorded streams.

    Attributes:
        provider: the name that the recorded log knows the route by.
        keeps_time: whether chunks come in the recorded rhythm, or at once.
        takes: what the recorded models took; without a budget, since its failures are recorded.
    """

    exchanges: Sequence[Exchange]
    provider: str = "replay"
    takes: Capabilities = field(
        default_factory=lambda: Capabilities(user_images=True, tool_images=True)
    )
    keeps_time: bool = False
    position: int = 0

    def capabilities(self, model: str) -> Capabilities:  # noqa: ARG002  # recorded, whatever the model
        """Return what its models take."""
        return self.takes

    async def prepare(self, request: LlmRequest) -> Prepared:
        """Return the request as its own JSON; nothing is decided here."""
        messages = [dict(message) for message in request.messages]
        return Prepared(
            {
                "config": dict(request.config),
                "tools": request.header.get("tools", []),
                "messages": messages,
            }
        )

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """Play the next exchange.

        Raises:
            LlmError: INVALID_REQUEST if the recording is over, or was made of another request.
        """
        exchange = self._next(prepared)
        last = exchange.stream[0].time if exchange.stream else 0
        for timed in exchange.stream:
            gap_ms = max(timed.time - last, 0) if self.keeps_time else 0
            await asyncio.sleep(gap_ms / 1000)
            last = timed.time
            yield timed.chunk

    def _next(self, prepared: Prepared) -> Exchange:
        number = self.position + 1
        if self.position >= len(self.exchanges):
            raise _refused(
                f"the recording holds {len(self.exchanges)} request(s), this is {number}"
            )
        exchange = self.exchanges[self.position]
        if exchange.body is not None:
            _check(exchange.body, prepared.body, number)
        self.position = number
        return exchange

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:  # noqa: ARG002  # recorded, whatever the model
        """Return one price for every image in sight, a small one for a placeholder."""
        return [20 if is_omitted(image) else IMAGE_TOKENS for image in images]


def _check(recorded: Mapping[str, Json], sent: Mapping[str, Json], number: int) -> None:
    where = _difference(recorded, sent, "body")
    if where is not None:
        raise _refused(f"request {number} differs from the recorded one at {where}")


def _difference(left: Json, right: Json, path: str) -> str | None:
    """Return the first place where two JSON values differ, None if they are equal."""
    if json_equal(left, right):
        return None
    if isinstance(left, dict) and isinstance(right, dict):
        names = sorted(left.keys() | right.keys())
        parts = [(f"{path}.{name}", left.get(name), right.get(name)) for name in names]
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = zip(left, right, strict=True)
        parts = [(f"{path}[{index}]", one, other) for index, (one, other) in enumerate(pairs)]
    else:
        return path
    found = (_difference(one, other, where) for where, one, other in parts)
    return next((where for where in found if where is not None), path)


def _refused(reason: str) -> LlmError:
    return LlmError(LlmFailure(reason, FailureCode.INVALID_REQUEST))
