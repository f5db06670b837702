"""Writes the body of a Messages request."""

from collections.abc import Mapping, Sequence
from typing import Any

from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import LlmRequest
from everfold.routes.anthropic_content import (
    end_with_user,
    image_block,
    mark_for_cache,
    system_blocks,
)
from everfold.routes.incremental import Listing, Projected
from everfold.routes.limits import RouteLimits
from everfold.routes.preparing import Built, Inlined, Shown
from everfold.routes.wire import LISTED

Json = dict[str, Any]

MIN_THINKING_TOKENS = 1024
"""The least that the provider takes as a budget."""

DEFAULT_MAX_TOKENS = 8192
_THINKING_TYPES = ("thinking", "redacted_thinking")


class BodyWriter:
    """Writes bodies for one model.

    Args:
        is_cached: whether cache breakpoints are set.
        extra: laid over the body.
    """

    def __init__(self, limits: RouteLimits, is_cached: bool, extra: Mapping[str, Any]) -> None:
        self._limits, self._is_cached, self._extra = limits, is_cached, extra

    def built(self, request: LlmRequest, projected: Projected, inlined: Inlined) -> Built:
        """Return a request's body: what stays the same comes first, the messages last.

        Raises:
            LlmError: INVALID_REQUEST for a reasoning effort that the model does not have.
        """
        shown = Shown(lambda image: image_block(inlined[image.at]))
        listing = Listing(projected, shown)
        # These are all that may still change, or hold a breakpoint: no fewer than the last two
        # messages of a user, if there are two.
        messages = listing.tail
        end_with_user(messages, is_first=listing.is_new)
        system = [] if projected.prompt is None else system_blocks(projected.prompt)
        tools = [_tool(tool) for tool in request.header.get("tools") or ()]
        if self._is_cached:
            mark_for_cache(tools, system, messages)
        body = {"model": request.config["model"], **self._options(request.config, messages)}
        body |= {**self._extra, "stream": True}
        body |= {"tools": tools} if tools else {}
        body |= {"system": system} if system else {}
        return Built({**body, "messages": LISTED}, listing, shown.blocks)

    def _options(self, config: Mapping[str, Any], messages: Sequence[Json]) -> Json:
        max_tokens = config.get("maxTokens", self._limits.max_output_tokens or DEFAULT_MAX_TOKENS)
        options: Json = {"max_tokens": max_tokens}
        thinking = self._thinking(config.get("reasoningEffort"), max_tokens, messages)
        if "temperature" in config and "thinking" not in thinking:
            # With thinking the provider takes no temperature but its own.
            options["temperature"] = config["temperature"]
        if "stop" in config:
            options["stop_sequences"] = list(config["stop"])
        return options | thinking

    def _thinking(self, effort: str | None, max_tokens: int, messages: Sequence[Json]) -> Json:
        """Return how much the model is told to think; nothing said is left to the model."""
        if effort is None:
            return {}
        known = self._limits.thinking.efforts
        if effort not in known:
            raise _unknown_effort(effort, sorted(known))
        if self._limits.thinking.kind == "adaptive":
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
        # What is left of the answer's tokens is for the words that people read.
        tokens = min(known[effort], max_tokens * 3 // 4)
        if tokens < MIN_THINKING_TOKENS or _goes_on_without_thinking(messages):
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _goes_on_without_thinking(messages: Sequence[Json]) -> bool:
    """Tell whether the model amid its tool calls has not thought, or its thoughts cannot be sent.

    Such a request is refused if it asks for thinking; it comes after a switch of models.
    """
    spoken = (
        message["content"] for message in reversed(messages) if message["role"] == "assistant"
    )
    last = next(spoken, None)
    if last is None or last[0]["type"] in _THINKING_TYPES:
        return False
    return any(block["type"] == "tool_use" for block in last)


def _tool(tool: Mapping[str, Any]) -> Json:
    described = {"description": tool["description"]} if tool.get("description") else {}
    schema = {"type": "object", **(tool.get("parameters") or {})}
    return {"name": tool["name"], **described, "input_schema": schema}


def _unknown_effort(effort: str, known: Sequence[str]) -> LlmError:
    shown = ", ".join(known) or "none; leave it out"
    text = f"reasoningEffort {effort!r} is not one that the model has; it has: {shown}"
    return LlmError(LlmFailure(text, FailureCode.INVALID_REQUEST))
