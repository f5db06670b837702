"""OpenAI-compatible chat completions: OpenAI, DeepSeek, OpenRouter, vLLM, Ollama and their like."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from everfold.llm.chunks import Chunk
from everfold.llm.route import Capabilities, LlmRequest, Prepared
from everfold.routes.incremental import Listing, Projected, Projections
from everfold.routes.openai_chat_form import ChatForm
from everfold.routes.openai_chat_reader import ChatReader
from everfold.routes.openai_client import ERRORS, clients, streaming
from everfold.routes.pictures import ImageVersions, data_url
from everfold.routes.preparing import (
    Built,
    Inline,
    Inlined,
    Shown,
    capabilities_of,
    outgoing_of,
    prepared_inline,
)
from everfold.routes.sending import Request, Sender
from everfold.routes.settings import RouteSettings
from everfold.routes.text_only import image_tokens
from everfold.routes.transports import MakeTransport
from everfold.routes.wire import LISTED

Json = dict[str, Any]
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
        transport: makes the HTTP transport of each SDK client; None for the SDK's own.
    """

    def __init__(
        self,
        settings: ChatSettings,
        versions: ImageVersions,
        transport: MakeTransport | None = None,
    ) -> None:
        self._settings, self._versions = settings, versions
        form = ChatForm(settings.reasoning_back)
        self._projections = Projections(settings.provider, form)
        self._limits = settings.route_limits()
        self._clients = clients(settings, transport)
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
        limits = self._limits.of(request.config["model"])
        projected = self._projections.of(request, limits)
        return await prepared_inline(
            projected.images,
            self._versions,
            limits,
            lambda inlined: self._built(request, projected, inlined),
        )

    def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """As `Route.stream`."""
        outgoing = outgoing_of(prepared, self._limits.of)
        opener = streaming(self._clients.get, _PATH, outgoing.wire)
        request = Request(opener, outgoing.sent, outgoing.wire, outgoing.limits)
        return self._sender.answer(request, ChatReader())

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _built(self, request: LlmRequest, projected: Projected, inlined: Inlined) -> Built:
        settings, config = self._settings, request.config
        shown = Shown(lambda image: _image(inlined[image.at]))
        body: Json = {"model": config["model"], "messages": LISTED}
        if request.header.get("tools"):
            body["tools"] = [
                {"type": "function", "function": tool} for tool in request.header["tools"]
            ]
        body |= self._options(config)
        if settings.has_cache_key and request.session_id:
            body["prompt_cache_key"] = request.session_id
        body |= {**settings.extra_body, "stream": True}
        return Built(body, Listing(projected, shown), shown.blocks)

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


def _image(inline: Inline) -> Json:
    url = data_url(inline.picture, inline.text)
    return {"type": "image_url", "image_url": {"url": url}}
