"""The Anthropic Messages API, and servers that speak it."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from everfold.llm.chunks import Chunk
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import Capabilities, LlmRequest, Prepared
from everfold.routes.anthropic_body import BodyWriter
from everfold.routes.anthropic_content import MessagesForm
from everfold.routes.anthropic_reading import MessagesReader
from everfold.routes.anthropic_sdk import connect
from everfold.routes.incremental import Projections
from everfold.routes.pictures import ImageVersions
from everfold.routes.preparing import capabilities_of, outgoing_of, prepared_inline
from everfold.routes.sending import Request, Sender
from everfold.routes.settings import RouteSettings
from everfold.routes.text_only import image_tokens
from everfold.routes.transports import MakeTransport


class AnthropicSettings(RouteSettings):
    """Settings of a Messages route.

    Attributes:
        is_cached: whether cache breakpoints are set.
        replays_thinking: whether the model's own thinking is sent back; without it a session goes
            on whose thinking the provider refuses.
        extra_body: laid over what is sent.
    """

    provider: str = "anthropic"
    limits_of: str = "anthropic"
    api_key_env: str | None = "ANTHROPIC_API_KEY"
    is_cached: bool = True
    replays_thinking: bool = True
    extra_body: Mapping[str, Any] = {}


class AnthropicMessagesRoute:
    """A `Route` to the Messages API.

    Args:
        settings: where and how.
        versions: the pictures' request versions.
        transport: makes the HTTP transport of each SDK client; None for the SDK's own.

    Raises:
        ImportError: the SDK is not installed; the message names the extra.
        LimitsError: the limits are unknown or make no sense.
    """

    def __init__(
        self,
        settings: AnthropicSettings,
        versions: ImageVersions,
        transport: MakeTransport | None = None,
    ) -> None:
        self._settings, self._versions = settings, versions
        form = MessagesForm(settings.replays_thinking)
        self._projections = Projections(settings.provider, form)
        self._limits = settings.route_limits()
        self._sdk = connect(settings, transport)
        self._sender = Sender(self._sdk.errors, settings.timeouts(), settings.secrets())

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
        model, settings = request.config["model"], self._settings
        limits = self._limits.of(model)
        projected = self._projections.of(request, limits)
        writer = BodyWriter(limits, settings.is_cached, settings.extra_body)
        return await prepared_inline(
            projected.images,
            self._versions,
            limits,
            lambda inlined: writer.built(request, projected, inlined),
        )

    def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """As `Route.stream`."""
        return self._answer(prepared)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._sdk.clients.close()

    async def _answer(self, prepared: Prepared) -> AsyncGenerator[Chunk, None]:
        outgoing = outgoing_of(prepared, self._limits.of)
        wire = outgoing.wire
        request = Request(lambda: self._sdk.open(wire), outgoing.sent, wire, outgoing.limits)
        try:
            async with aclosing(self._sender.answer(request, MessagesReader())) as chunks:
                async for chunk in chunks:
                    yield chunk
        except LlmError as error:
            raise LlmError(_advised(error.failure)) from error.__cause__


def _advised(failure: LlmFailure) -> LlmFailure:
    """Return the failure with the way out where thinking in the session is refused for ever (M1)."""
    said = failure.message.lower()
    if failure.code != FailureCode.INVALID_REQUEST or "thinking" not in said:
        return failure
    if not any(word in said for word in ("signature", "cannot be modified", "must be passed back")):
        return failure
    advice = "set 'replays_thinking = false' for this route to go on without earlier thinking"
    return replace(failure, message=f"{failure.message}; {advice}")
