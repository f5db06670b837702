"""Playing a recording: routes that answer as the recorded ones did, tools that give the recorded results."""

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pydantic import BaseModel

from everfold.agent.tools import Tool, ToolArgumentsError, ToolContext, ToolOutput
from everfold.llm.budgets import ImageBudget
from everfold.llm.chunks import Chunk
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.images import is_omitted
from everfold.llm.route import Capabilities, LlmRequest, Prepared, Route
from everfold.llm.stream import unpack
from everfold.recordings.recording import Exchange, Recording, price_key
from everfold.session.frozen import Json

_SHOWN_TOKENS, _OMITTED_TOKENS = 85, 20
_NEVER_ANSWERED = ("TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED", "ABORTED", "ABORTED_BEFORE_DISPATCH")
_THREAD_TAIL = "It may still be running"


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A request of the replay, and the recorded one in whose place it came."""

    request: LlmRequest
    seq: int
    exchange: Exchange


@dataclass(slots=True)
class Player:
    """Plays one recording; one for each replay.

    Attributes:
        last_seq: gives the last seq of the session that is played.
        keeps_time: whether chunks come in the recorded rhythm, or at once.
        stuck: set when the recording holds nothing more until somebody cancels, or the process ends.
        dispatched: the requests that came, in order.
    """

    recording: Recording
    last_seq: Callable[[], int] = field(default=lambda: -1)
    keeps_time: bool = False
    stuck: asyncio.Event = field(default_factory=asyncio.Event)
    dispatched: list[Dispatched] = field(default_factory=list)
    _results: dict[str, deque[Json]] = field(default_factory=lambda: defaultdict(deque))

    def __post_init__(self) -> None:
        for event in self.recording.events:
            if event["type"] == "tool/result":
                call_id = event["data"]["message"]["source"]["callId"]
                self._results[call_id].append(event["data"])

    def routes(self) -> list[Route]:
        """Return a route for each that was recorded."""
        names = [exchange.provider for exchange in self.recording.exchanges]
        names.append(self.recording.settings["model"]["provider"])
        return [PlayedRoute(self, name, name) for name in dict.fromkeys(names)]

    def route(self, provider: str) -> Route:
        """Return one route, of this name, for all that were recorded."""
        return PlayedRoute(self, provider, self.recording.settings["model"]["provider"])

    def tools(self) -> list[Tool]:
        """Return a tool for each that was recorded."""
        return [self._tool(definition) for definition in self.recording.tools]

    def next_exchange(self, request: LlmRequest) -> Exchange:
        """Return the exchange in whose place a request comes.

        Raises:
            LlmError: the recording is over.
        """
        position, known = len(self.dispatched), self.recording.exchanges
        if position >= len(known):
            text = f"the recording holds {len(known)} request(s), this is one more"
            raise LlmError(LlmFailure(text, FailureCode.INVALID_REQUEST))
        self.dispatched.append(Dispatched(request, self.last_seq(), known[position]))
        return known[position]

    def next_result(self, call_id: str) -> Json:
        """Return the data of the next recorded result of a call, None if there is none."""
        waiting = self._results[call_id]
        return waiting.popleft() if waiting else None

    async def wait_for_ever(self) -> NoReturn:
        """Wait as the recorded process did when it was cancelled, or ended."""
        self.stuck.set()
        while True:
            await asyncio.Event().wait()

    def _tool(self, definition: Json) -> Tool:
        name = definition["name"]
        texts = [_text(data) for data in self._all_results() if self._tool_of(data) == name]
        return PlayedTool(
            name=name,
            description=definition.get("description", ""),
            parameters=definition.get("parameters", {}),
            function=lambda: None,
            is_async=not any(_THREAD_TAIL in text for text in texts),
            timeout_s=None,
            _model=BaseModel,
            _names={},
            _context=None,
            player=self,
        )

    def _all_results(self) -> list[Json]:
        return [data for waiting in self._results.values() for data in waiting]

    def _tool_of(self, data: Json) -> str | None:
        call_id = data["message"]["source"]["callId"]
        for event in self.recording.events:
            if event["type"] == "tool/call" and event["data"]["callId"] == call_id:
                name: str = event["data"]["name"]
                return name
        return None


@dataclass(slots=True)
class PlayedRoute:
    """A `Route` that answers from a recording.

    Attributes:
        recorded_as: the recorded provider whose models' capabilities it gives as its own.
    """

    player: Player
    provider: str
    recorded_as: str

    def capabilities(self, model: str) -> Capabilities:  # noqa: ARG002  # recorded by provider
        """As `Route.capabilities`."""
        fields = dict(self.player.recording.capabilities.get(self.recorded_as, {}))
        budget = fields.pop("budget", None)
        return Capabilities(**fields, budget=None if budget is None else ImageBudget(**budget))

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:  # noqa: ARG002  # recorded by image
        """As `Route.image_tokens`."""
        prices = self.player.recording.prices
        return [
            prices.get(price_key(image), _OMITTED_TOKENS if is_omitted(image) else _SHOWN_TOKENS)
            for image in images
        ]

    async def prepare(self, request: LlmRequest) -> Prepared:
        """As `Route.prepare`: what the recorded request came to."""
        exchange = self.player.next_exchange(request)
        if exchange.refused is not None:
            raise LlmError(exchange.refused)
        return Prepared(
            exchange.body or {},
            exchange.image_count,
            exchange.image_bytes,
            {"exchange": exchange},
        )

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """As `Route.stream`: the recorded chunks, and then what came after them."""
        exchange: Exchange = prepared.extra["exchange"]
        last = 0
        for timed in unpack(exchange.stream or []):
            gap_ms = max(timed.time - last, 0) if self.player.keeps_time else 0
            await asyncio.sleep(gap_ms / 1000)
            last = timed.time
            yield timed.chunk
        if exchange.failure is not None:
            raise LlmError(exchange.failure)
        if exchange.ended == "closed":
            await self.player.wait_for_ever()


@dataclass(frozen=True, slots=True)
class PlayedTool(Tool):
    """A tool whose results are recorded; it never ends where the recorded one did not."""

    player: Player = field(kw_only=True)

    def bind(self, arguments: str, context: ToolContext) -> Callable[[], Any]:  # noqa: ARG002  # recorded by call
        """As `Tool.bind`: what the recorded call came to.

        Raises:
            ToolArgumentsError: the recorded arguments were refused.
        """
        data = self.player.next_result(context.call_id)
        code = None if data is None else data.get("error", {}).get("code")
        if code == "INVALID_ARGUMENTS":
            raise ToolArgumentsError(_text(data))

        async def play() -> ToolOutput:
            if data is None or code in _NEVER_ANSWERED:
                await self.player.wait_for_ever()
            if code is not None:
                raise _error(data)
            block = data["message"]["content"][0]
            return ToolOutput(
                tuple(block["content"]), block.get("isError", False), data.get("meta")
            )

        return play


def _text(data: Json) -> str:
    blocks = data["message"]["content"][0]["content"]
    return "".join(block.get("text", "") for block in blocks)


def _error(data: Json) -> Exception:
    """Return an exception that is reported as the recorded one was."""
    name = data["error"]["name"]
    said = _text(data).removeprefix(f"{name}: ")
    kind = type(name if re.fullmatch(r"\w+", name) else "ToolError", (Exception,), {})
    error: Exception = kind(said)
    return error
