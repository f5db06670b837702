"""A small scripted route: it answers by rule, and it has a budget that it reports and never enforces.

What it counts is what a real adapter would send: the request version of every image that the
conversation still shows, byte for byte, in base64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everfold.attachments.ports import AttachmentStore
from everfold.attachments.versions import RequestVersions, VersionSpec
from everfold.cli.describe import plural, size
from everfold.llm.budgets import ImageBudget, required_offload
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.images import images, is_omitted, retained_lengths
from everfold.session.frozen import Json

PROVIDER = "demo"
MODEL = "scripted-1"
TOOL = "zoom"
SPEC = VersionSpec(max_edge=1568)
"""The form in which this route sends images."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers: text, and the tool that it calls, if it calls one."""

    text: str
    tool: str | None = None


class ScriptedRoute:
    """Answers requests by a fixed rule.

    Args:
        attachments: where the bytes of images are.
        budget: what a request may carry.
    """

    def __init__(self, attachments: AttachmentStore, budget: ImageBudget) -> None:
        self._versions = RequestVersions(attachments)
        self.budget = budget

    def ask(self, messages: Sequence[Mapping[str, Json]]) -> Reply:
        """Return the answer to a request.

        Raises:
            LlmError: IMAGE_OFFLOAD_REQUIRED, with how many of the oldest images must go (R251).
        """
        self._check_budget(messages)
        seen = [image for message in messages for image in images(message["content"])]
        last = messages[-1]["content"]
        if any(block.get("type") == "tool-result" for block in last):
            return Reply("Closer up: " + _seen_text(seen))
        asks_zoom = any(TOOL in str(block.get("text", "")).lower() for block in last)
        if asks_zoom:
            return Reply("Let me look at the newest one.", TOOL)
        return Reply(_seen_text(seen))

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


def _seen_text(seen: Sequence[Mapping[str, Json]]) -> str:
    names = [str(each["attachment"].get("name", "image")) for each in seen if not is_omitted(each)]
    gone = len(seen) - len(names)
    text = f"I see {plural(len(names), 'image')}: {', '.join(names)}"
    return f"{text}; {gone} omitted." if gone else f"{text}."
