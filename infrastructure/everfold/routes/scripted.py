"""A route that answers from a script: for tests, for the demo, and for trying things without a key."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from everfold.llm.budgets import ImageBudget, UnavoidableExcessError, required_beside
from everfold.llm.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    FinishKind,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.images import is_omitted, retained_lengths, stored_bytes
from everfold.llm.route import Capabilities, LlmRequest, Prepared

IMAGE_TOKENS = 85


@dataclass(frozen=True, slots=True)
class Reply:
    """What the script says to one request.

    Attributes:
        chunks: what is streamed, in order.
        failure: raised after the chunks; before the first one if there are none.
        hangs: whether the stream stays open for ever after the chunks.
        pause_s: time before each chunk, in seconds.
    """

    chunks: tuple[Chunk, ...] = ()
    failure: LlmFailure | None = None
    hangs: bool = False
    pause_s: float = 0.0


Step = Reply | Callable[[LlmRequest], Reply]
"""A reply, or what makes one of the request."""


def says(text: str, *, finish: FinishKind = "stop", pieces: int = 2) -> Reply:
    """Return a reply of one text block, streamed in about `pieces` deltas."""
    size = max(-(-len(text) // pieces), 1)
    deltas = [TextDelta(0, text[start : start + size]) for start in range(0, len(text), size)]
    block = BlockEnd(0, {"type": "text", "text": text})
    usage = Usage(input_tokens=10, output_tokens=len(text) // 4 + 1)
    return Reply((BlockStart(0, "text"), *deltas, block, usage, Finish(finish)))


def calls(*wanted: tuple[str, str, Mapping[str, Any] | str], text: str = "") -> Reply:
    """Return a reply that calls tools: id, name, and arguments (a mapping, or JSON text) of each."""
    chunks: list[Chunk] = []
    if text:
        chunks += [TextDelta(0, text), BlockEnd(0, {"type": "text", "text": text})]
    for index, (call_id, name, given) in enumerate(wanted, start=1 if text else 0):
        arguments = given if isinstance(given, str) else orjson.dumps(dict(given)).decode()
        chunks += [
            BlockStart(index, "tool-call"),
            ToolCallDelta(index, call_id, arguments, name),
            BlockEnd(
                index,
                {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments},
            ),
        ]
    return Reply((*chunks, Usage(20, 5 * len(wanted)), Finish("tool-calls")))


def fails(
    code: str,
    message: str = "scripted failure",
    *,
    after: Iterable[Chunk] = (),
    offload_images: int | None = None,
    retry_after_ms: int | None = None,
) -> Reply:
    """Return a reply that fails, after some chunks."""
    failure = LlmFailure(
        message, code, provider_retry_after_ms=retry_after_ms, offload_images=offload_images
    )
    return Reply(tuple(after), failure)


def hangs(*chunks: Chunk) -> Reply:
    """Return a reply that streams some chunks and then never goes on."""
    return Reply(chunks, hangs=True)


def echo(request: LlmRequest) -> Reply:
    """Answer with the last words of the user and the number of images in sight."""
    words = ""
    shown = len(
        retained_lengths([message["content"] for message in request.messages], stored_bytes)
    )
    for message in request.messages:
        if message["role"] == "user":
            texts = [block["text"] for block in message["content"] if block.get("type") == "text"]
            words = " ".join(texts) or words
    return says(f"You said {words!r}; I see {shown} image(s).")


@dataclass(slots=True)
class ScriptedRoute:
    """Answers each request with the next step of a script, and keeps what it was asked.

    It counts images against its budget like a real route: it reports before sending, and never
    changes a request.

    Attributes:
        script: what comes next; when it is used up, `otherwise` answers.
        otherwise: answers when the script is used up.
        takes: what its models take.
        requests: every request that was prepared, whether it was sent or not.
        sent: every request that was sent, in its wire form.
    """

    script: Sequence[Step] = ()
    otherwise: Step = echo
    provider: str = "scripted"
    takes: Capabilities = field(
        default_factory=lambda: Capabilities(user_images=True, tool_images=True)
    )
    requests: list[LlmRequest] = field(default_factory=list)
    sent: list[Prepared] = field(default_factory=list)
    _steps: list[Step] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = list(self.script)

    def will(self, *steps: Step) -> None:
        """Put further steps at the end of the script."""
        self._steps.extend(steps)

    def capabilities(self, model: str) -> Capabilities:  # noqa: ARG002  # all models are alike
        """Return what its models take."""
        return self.takes

    async def prepare(self, request: LlmRequest) -> Prepared:
        """Return the request as its own JSON.

        Raises:
            LlmError: IMAGE_OFFLOAD_REQUIRED, with the count that its budget asks for;
                CONTEXT_WINDOW_EXCEEDED where no omission can help (V7).
        """
        self.requests.append(request)
        messages = [dict(message) for message in request.messages]
        lengths = retained_lengths([message["content"] for message in messages], stored_bytes)
        if self.takes.budget is not None:
            _check_budget(messages, self.takes.budget)
        body = {
            "config": dict(request.config),
            "tools": request.header.get("tools", []),
            "messages": messages,
        }
        extra = {"request": request}
        return Prepared(body, image_count=len(lengths), image_bytes=sum(lengths), extra=extra)

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """Play the next step of the script."""
        self.sent.append(prepared)
        step = self._steps.pop(0) if self._steps else self.otherwise
        reply = step if isinstance(step, Reply) else step(prepared.extra["request"])
        for chunk in reply.chunks:
            # Also without a pause: other tasks must get their turn between chunks.
            await asyncio.sleep(reply.pause_s)
            yield chunk
        if reply.failure is not None:
            raise LlmError(reply.failure)
        if reply.hangs:
            await asyncio.Event().wait()

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:  # noqa: ARG002  # all models are alike
        """Return one price for every image in sight, a small one for a placeholder."""
        return [20 if is_omitted(image) else IMAGE_TOKENS for image in images]


def _check_budget(messages: Sequence[Mapping[str, Any]], budget: ImageBudget) -> None:
    removable: list[Any] = []
    fixed: list[Any] = []
    for message in messages:
        (fixed if message["role"] == "assistant" else removable).append(message["content"])
    lengths = retained_lengths(removable, stored_bytes)
    staying = retained_lengths(fixed, stored_bytes)
    try:
        count = required_beside(lengths, staying, budget)
    except UnavoidableExcessError as error:
        raise LlmError(LlmFailure(str(error), FailureCode.CONTEXT_WINDOW_EXCEEDED)) from error
    if count:
        oldest = "oldest image" if count == 1 else f"{count} oldest images"
        text = f"of {len(lengths) + len(staying)} the {oldest} must be omitted"
        code = FailureCode.IMAGE_OFFLOAD_REQUIRED
        raise LlmError(LlmFailure(text, code, offload_images=count))
