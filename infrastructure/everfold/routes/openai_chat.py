"""OpenAI-compatible chat completions: OpenAI, DeepSeek, OpenRouter, vLLM, Ollama and their like."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from everfold.llm.chunks import Chunk
from everfold.llm.route import Capabilities, LlmRequest, Prepared
from everfold.routes.incremental import Projected, Projections
from everfold.routes.openai_chat_reader import ChatReader
from everfold.routes.openai_client import ERRORS, clients, streaming
from everfold.routes.pairing import arguments_text
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, TextPart, ThoughtPart, Turn
from everfold.routes.pictures import ImageVersions, data_url
from everfold.routes.preparing import (
    Built,
    Inline,
    capabilities_of,
    prepared_inline,
    sent_of,
    wire_bytes,
)
from everfold.routes.projection import AccessPath
from everfold.routes.sending import Request, Sender
from everfold.routes.settings import RouteSettings
from everfold.routes.text_only import image_tokens

Json = dict[str, Any]
FAILED = "[The call failed:]"
_PATH = "/chat/completions"


class ChatSettings(RouteSettings):
    """Settings of a chat completions route.

    Attributes:
        max_tokens_field: the name of the limit of an answer.
        reasoning: how effort is asked for: `effort` as `reasoning_effort`, `object` as
            `reasoning.effort` (OpenRouter), `none` not at all.
        reasoning_back: the field in which own reasoning is sent back; None to leave it out.
        has_usage: whether to ask for usage at the end of the stream.
        has_cache_key: whether to send the session as `prompt_cache_key`.
    """

    limits_of: str = "openai-compatible"
    api_key_env: str | None = "OPENAI_API_KEY"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    reasoning: Literal["effort", "object", "none"] = "effort"
    reasoning_back: Literal["reasoning_content", "reasoning"] | None = None
    has_usage: bool = True
    has_cache_key: bool = False
    extra_body: Mapping[str, Any] = Field(default={})


class OpenAiChatRoute:
    """A `Route` to chat completions.

    Args:
        settings: where and how.
        versions: the pictures' request versions.
        access_path: where the model's tools can read an attachment.
    """

    def __init__(
        self,
        settings: ChatSettings,
        versions: ImageVersions,
        access_path: AccessPath = lambda _attachment: None,
    ) -> None:
        self._settings, self._versions = settings, versions
        self._projections = Projections(settings.provider, access_path)
        self._limits = settings.route_limits()
        self._clients = clients(settings)
        self._sender = Sender(ERRORS, settings.timeouts(), settings.secrets())

    @property
    def provider(self) -> str:
        """As `Route.provider`."""
        return self._settings.provider

    def capabilities(self, model: str) -> Capabilities:
        """As `Route.capabilities`."""
        return capabilities_of(self._limits.of(model))

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:
        """As `Route.image_tokens`."""
        return image_tokens(images, self._limits.of(model))

    async def prepare(self, request: LlmRequest) -> Prepared:
        """As `Route.prepare`."""
        model = request.config["model"]
        limits = self._limits.of(model)
        projected = self._projections.of(request, limits)
        body = _Body(self._settings, request, projected)
        return await prepared_inline(
            projected.turns,
            self._versions,
            limits,
            lambda _, inline: body.built(inline),
            projected.images,
        )

    def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """As `Route.stream`."""
        wire = wire_bytes(prepared.body)
        opener = streaming(self._clients.get, _PATH, wire)
        limits = self._limits.of(str(prepared.body.get("model")))
        return self._sender.answer(Request(opener, sent_of(prepared), wire, limits), ChatReader())

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()


class _Body:
    """Writes the body of a request."""

    def __init__(self, settings: ChatSettings, request: LlmRequest, projected: Projected) -> None:
        self._settings, self._request, self._projected = settings, request, projected
        self._inline: Mapping[int, Inline] = {}
        self._built = Built()

    def built(self, inline: Mapping[int, Inline]) -> Built:
        self._inline, self._built = inline, Built()
        settings, request = self._settings, self._request
        config = request.config
        body: Json = {
            "model": config["model"],
            "messages": self._projected.items(self._messages),
        }
        if request.header.get("tools"):
            body["tools"] = [
                {"type": "function", "function": tool} for tool in request.header["tools"]
            ]
        body |= self._options(config)
        if settings.has_cache_key and request.session_id:
            body["prompt_cache_key"] = request.session_id
        self._built.body = body | dict(settings.extra_body) | {"stream": True}
        return self._built

    def _options(self, config: Mapping[str, Any]) -> Json:
        settings, options = self._settings, Json()
        if "maxTokens" in config:
            options[settings.max_tokens_field] = config["maxTokens"]
        for key in ("temperature", "stop"):
            if key in config:
                options[key] = config[key]
        effort = config.get("reasoningEffort")
        if effort is not None and settings.reasoning == "effort":
            options["reasoning_effort"] = effort
        elif effort is not None and settings.reasoning == "object":
            options["reasoning"] = {"effort": effort}
        if settings.has_usage:
            options["stream_options"] = {"include_usage": True}
        return options

    def _messages(self, turn: Turn) -> list[Json]:
        if turn.role == "tool":
            return [self._answer(part) for part in turn.parts if isinstance(part, AnswerPart)]
        if turn.role == "assistant":
            return [self._assistant(turn)]
        return [{"role": turn.role, "content": self._content(turn.parts)}]

    def _assistant(self, turn: Turn) -> Json:
        calls = [part for part in turn.parts if isinstance(part, CallPart)]
        said = [part for part in turn.parts if isinstance(part, (TextPart, ImagePart))]
        message: Json = {"role": "assistant", "content": self._content(said) if said else None}
        thoughts = [part.text for part in turn.parts if isinstance(part, ThoughtPart)]
        if thoughts and self._settings.reasoning_back is not None:
            message[self._settings.reasoning_back] = "".join(thoughts)
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
        return message

    def _answer(self, answer: AnswerPart) -> Json:
        parts = (TextPart(FAILED), *answer.parts) if answer.is_error else answer.parts
        return {"role": "tool", "tool_call_id": answer.id, "content": self._content(parts)}

    def _content(self, parts: Sequence[object]) -> str | list[Json]:
        """Return text alone as text, which every server takes; with pictures a list of parts."""
        if not any(isinstance(part, ImagePart) for part in parts):
            return "\n\n".join(part.text for part in parts if isinstance(part, TextPart))
        return [
            self._image(part)
            if isinstance(part, ImagePart)
            else {"type": "text", "text": part.text}
            for part in parts
            if isinstance(part, (TextPart, ImagePart))
        ]

    def _image(self, part: ImagePart) -> Json:
        inline = self._inline[part.at]
        url = data_url(inline.picture, inline.text)
        return self._built.holding(part, {"type": "image_url", "image_url": {"url": url}})


def _call(call: CallPart) -> Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_text(call)},
    }
