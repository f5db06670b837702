"""A small scripted route: it answers by rule, and it has a budget that it reports and never enforces.

What it counts is what a real adapter would send: the request version of every image that the
conversation still shows, byte for byte, in base64.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from everfold.attachments.ports import AttachmentStore
from everfold.attachments.versions import RequestVersions, VersionSpec
from everfold.cli.describe import plural, size
from everfold.llm.budgets import ImageBudget, required_offload
from everfold.llm.chunks import Chunk
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.images import images, is_omitted, retained_lengths
from everfold.llm.route import Capabilities, LlmRequest, Prepared
from everfold.routes.scripted import calls, says
from everfold.session.frozen import Json

PROVIDER = "demo"
MODEL = "scripted-1"
TOOL = "zoom"
TOOL_CALL = "'tool-call'"
SPEC = VersionSpec(max_edge=1568)
"""The form in which this route sends images."""


class DemoRoute:
    """A `Route` that answers by a fixed rule.

    Args:
        attachments: where the bytes of images are.
        budget: what a request may carry.
    """

    provider = PROVIDER

    def __init__(self, attachments: AttachmentStore, budget: ImageBudget) -> None:
        self._versions = RequestVersions(attachments)
        self.budget = budget

    def capabilities(self, model: str) -> Capabilities:  # noqa: ARG002  # there is one model
        """As `Route.capabilities`."""
        return Capabilities(user_images=True, tool_images=True, budget=self.budget)

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Json]]) -> Sequence[int]:  # noqa: ARG002  # there is one model
        """As `Route.image_tokens`."""
        return [20 if is_omitted(image) else 85 for image in images]

    async def prepare(self, request: LlmRequest) -> Prepared:
        """As `Route.prepare`.

        Raises:
            LlmError: IMAGE_OFFLOAD_REQUIRED, with how many of the oldest images must go (R251).
        """
        self._check_budget(request.messages)
        body = {"config": dict(request.config), "messages": list(request.messages)}
        return Prepared(body, image_bytes=self.load(request.messages))

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """As `Route.stream`."""
        messages = prepared.body["messages"]
        text, tool = _answer(messages)
        call_id = f"call-{1 + str(messages).count(TOOL_CALL)}"
        reply = says(text) if tool is None else calls((call_id, tool, {}), text=text)
        for chunk in reply.chunks:
            await asyncio.sleep(0)
            yield chunk

    def length_of(self, image: Mapping[str, Json]) -> int:
        """Return the raw bytes of an image as it is sent; they are read and checked, not believed."""
        version = self._versions.version(image["attachment"], SPEC)
        return len(self._versions.read(version))

    def load(self, messages: Sequence[Mapping[str, Json]]) -> int:
        """Return what the images of a request take of the budget, in bytes as they travel."""
        lengths = retained_lengths((each["content"] for each in messages), self.length_of)
        return sum(map(self.budget.length, lengths))

    def _check_budget(self, messages: Sequence[Mapping[str, Json]]) -> None:
        lengths = retained_lengths((each["content"] for each in messages), self.length_of)
        count = required_offload(lengths, self.budget)
        if count == 0:
            return
        load = sum(map(self.budget.length, lengths))
        message = (
            f"{plural(len(lengths), 'image')} of {size(load)} in base64, "
            f"this route takes {size(self.budget.max_bytes)}"
        )
        failure = LlmFailure(message, FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=count)
        raise LlmError(failure)


def budget_for(first: Sequence[int], rest: Sequence[int]) -> ImageBudget:
    """Return a budget that takes the first images and any single one, but not all of them.

    Args:
        first: raw bytes of the images of the first turn.
        rest: of those of the second.
    """
    base64 = ImageBudget("base64")
    lengths = list(map(base64.length, (*first, *rest)))
    total = sum(lengths)
    limit = max(sum(lengths[: len(first)]), max(lengths), total * 3 // 4)
    return ImageBudget("base64", max_bytes=limit, byte_quantum=max(1, limit // 8))


def _answer(messages: Sequence[Mapping[str, Json]]) -> tuple[str, str | None]:
    """Return what the model says to a request, and the tool that it calls, if it calls one."""
    seen = [image for message in messages for image in images(message["content"])]
    last = messages[-1]["content"]
    if any(block.get("type") == "tool-result" for block in last):
        return "Closer up: " + _seen_text(seen), None
    if any(TOOL in str(block.get("text", "")).lower() for block in last):
        return "Let me look at the newest one.", TOOL
    return _seen_text(seen), None


def _seen_text(seen: Sequence[Mapping[str, Json]]) -> str:
    names = [str(each["attachment"].get("name", "image")) for each in seen if not is_omitted(each)]
    gone = len(seen) - len(names)
    text = f"I see {plural(len(names), 'image')}: {', '.join(names)}"
    return f"{text}; {gone} omitted." if gone else f"{text}."
