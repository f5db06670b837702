"""The contract of a route: the way to one provider. Routes project and report, they never decide."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from everfold.llm.budgets import ImageBudget
from everfold.llm.chunks import Chunk


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model takes on a route.

    Attributes:
        user_images: whether user messages may hold images; so for tool results and assistants.
        context_window: tokens; None if unknown.
        system_prompt_update: "in-history" where later system messages are read in place (R200).
        budget: limits of a request's images; None where there are none.
    """

    user_images: bool = False
    tool_images: bool = False
    assistant_images: bool = False
    context_window: int | None = None
    system_prompt_update: Literal["in-history"] | None = None
    budget: ImageBudget | None = None


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """What a model is asked, before a route gives it its wire form.

    Attributes:
        header: canonical request header: `{config, adapterDefaults?, tools?}` (R187).
        messages: derived messages in surface order; the first one may be the system prompt.
        session_id: for prompt caches that want a key.
        access_path: the template of where the model's tools can read attachments
            (`everfold.llm.access_paths`); None for nowhere.
    """

    header: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    session_id: str = ""
    access_path: str | None = None

    @property
    def config(self) -> Mapping[str, Any]:
        """The call config: provider, model, reasoningEffort?, temperature?, maxTokens?, stop?."""
        config: Mapping[str, Any] = self.header["config"]
        return config


class Prepared:
    """A request in its wire form, not sent yet.

    Args:
        body: the JSON body, or what makes it when somebody first looks at it.

    Attributes:
        image_count: how many images travel in it.
        image_bytes: their bytes as the route's budget counts them.
        extra: what the route that made it needs to send it.
    """

    __slots__ = ("_body", "extra", "image_bytes", "image_count")

    def __init__(
        self,
        body: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        image_count: int = 0,
        image_bytes: int = 0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._body = body
        self.image_count, self.image_bytes = image_count, image_bytes
        self.extra = {} if extra is None else extra

    @property
    def body(self) -> Mapping[str, Any]:
        """The JSON body exactly as it will be sent; no key, no authorization header.

        It is a function of the request, the route's settings and stored attachment versions alone.
        A long conversation's costs time to make: a turn that goes well does not look at it.
        """
        if not isinstance(self._body, Mapping):
            self._body = self._body()
        return self._body


class Route(Protocol):
    """One provider; safe for several requests at once.

    `prepare` and `stream` raise `LlmError`, and nothing else, for whatever goes wrong.
    """

    @property
    def provider(self) -> str:
        """The name by which logs know the route."""
        ...

    def capabilities(self, model: str) -> Capabilities:
        """Return what a model takes here."""
        ...

    async def prepare(self, request: LlmRequest) -> Prepared:
        """Return the wire form of a request, reading retained attachments alone (R255).

        Raises:
            LlmError: IMAGE_OFFLOAD_REQUIRED with the count when a budget is exceeded (R251), at
                once an UNSUPPORTED_CONTENT or CONTEXT_WINDOW_EXCEEDED failure when no omission can
                help (R254, V7).
        """
        ...

    def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """Send a prepared request and yield the answer's chunks; the last one is a `Finish`.

        Closing the iterator cancels the request.

        Raises:
            LlmError: the request failed, before or amid the answer.
        """
        ...

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:
        """Return the token price of each image block; an omitted one costs its placeholder (R304)."""
        ...


async def hang_up(routes: Iterable[Route]) -> None:
    """Close the connections that routes keep open in the running event loop, before it ends.

    A route that keeps some has an async `close`; it can be asked again afterwards.
    """
    for route in routes:
        close = getattr(route, "close", None)
        if close is not None:
            await close()
