"""Writes the body of a Messages request."""

from collections.abc import Mapping, Sequence
from typing import Any

from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import LlmRequest
from everfold.routes.anthropic_content import MessageWriter, alternating, mark_for_cache
from everfold.routes.incremental import Projected
from everfold.routes.limits import RouteLimits
from everfold.routes.preparing import Built, Inline

Json = dict[str, Any]

MIN_THINKING_TOKENS = 1024
"""The least that the provider takes as a budget."""

DEFAULT_MAX_TOKENS = 8192
_THINKING_TYPES = ("thinking", "redacted_thinking")


class BodyWriter:
    """Writes bodies for one model.

    Args:
        is_cached: whether cache breakpoints are set.
        replays_thinking: whether own thinking blocks are sent back.
        extra: laid over the body.
    """

    def __init__(
        self,
        limits: RouteLimits,
        is_cached: bool,
        replays_thinking: bool,
        extra: Mapping[str, Any],
    ) -> None:
        self._limits, self._is_cached = limits, is_cached
        self._replays_thinking, self._extra = replays_thinking, extra

    def built(
        self, request: LlmRequest, projected: Projected, inline: Mapping[int, Inline]
    ) -> Built:
        """Return a request's body: what stays the same comes first, the messages last.

        Raises:
            LlmError: INVALID_REQUEST for a reasoning effort that the model does not have.
        """
        built, turns = Built(), projected.turns
        writer = MessageWriter(inline, built, self._replays_thinking)
        has_prompt = bool(turns) and turns[0].role == "system"
        system = writer.system(turns[0]) if has_prompt else []
        messages = alternating(projected.items(writer.write, since=int(has_prompt)))
        tools = [_tool(tool) for tool in request.header.get("tools") or ()]
        if self._is_cached:
            mark_for_cache(tools, system, messages)
        body = {"model": request.config["model"], **self._options(request.config, messages)}
        body |= {**self._extra, "stream": True}
        body |= {"tools": tools} if tools else {}
        body |= {"system": system} if system else {}
        built.body = {**body, "messages": messages}
        return built

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
