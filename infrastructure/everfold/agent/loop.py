"""What one loop instance knows between its turns: settings, routes, tools, and how far the log is built."""

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from everfold.agent.content import AdmitImages
from everfold.agent.errors import AgentError
from everfold.agent.log import SessionLog
from everfold.agent.prompt import SystemPrompt
from everfold.agent.requests import RequestBuilder
from everfold.agent.settings import AgentSettings
from everfold.agent.tools import Tool, tool
from everfold.llm.access_paths import check_access_path
from everfold.llm.retrying import Jitter
from everfold.llm.route import Capabilities, Route
from everfold.plugins.waterfalls import Waterfalls
from everfold.session.deciding import AppendEvent
from everfold.session.frozen import Json
from everfold.session.lossless import encode
from everfold.session.payload import check_payload
from everfold.session.request_header import next_header
from everfold.session.session import Session

log = logging.getLogger("everfold.agent")


@dataclass(slots=True)
class Loop:
    """One loop instance on one session.

    Attributes:
        settings: may be exchanged between steps.
        is_header_logged: whether this instance has written a `request/header` (R193).
        generation: the `contentGeneration` of the last built request; at first that of the log
            when the loop attached (R198).
    """

    log: SessionLog
    settings: AgentSettings
    routes: Mapping[str, Route]
    tools: Mapping[str, Tool]
    waterfalls: Waterfalls
    admit: AdmitImages | None = None
    jitter: Jitter = random.random
    is_header_logged: bool = False
    generation: int = 0
    builder: RequestBuilder = field(default_factory=RequestBuilder)
    prompt: SystemPrompt = field(init=False)

    def __post_init__(self) -> None:
        self.prompt = SystemPrompt(self.log.new_id)

    @property
    def route(self) -> Route:
        """The route of the model that is asked now.

        Raises:
            AgentError: there is no route to it.
        """
        return self.route_to(self.settings.model.provider)

    def route_to(self, provider: str) -> Route:
        """Return a route by its name.

        Raises:
            AgentError: there is none.
        """
        route = self.routes.get(provider)
        if route is None:
            known = ", ".join(sorted(self.routes)) or "none"
            raise AgentError(f"there is no route to provider {provider!r}; routes: {known}")
        return route

    def check(self, settings: AgentSettings) -> None:
        """Refuse settings that no request could be made with, before a turn is opened for them.

        Raises:
            AgentError: there is no route to the model's provider.
            PayloadError: the settings make no request header.
            AccessPathError: the access path leads to no attachment.
        """
        if settings.access_path is not None:
            check_access_path(settings.access_path)
        self.route_to(settings.model.provider)
        _, header = encode(settings.model.header(self._definitions()), "header")
        check_payload("request/header", {"header": header, "reason": "initial"}, 0)

    @property
    def capabilities(self) -> Capabilities:
        """What the model that is asked now takes."""
        return self.route.capabilities(self.settings.model.model)

    def report(self, plugin: str, error: BaseException) -> None:
        """Write into the program's own log that a plugin failed in a waterfall."""
        log.error(
            "plugin %r failed in a waterfall of session %r",
            plugin,
            self.log.session_id,
            exc_info=error,
        )

    def header(self) -> dict[str, Json]:
        """Return the header that the next request is to be sent with."""
        return self.settings.model.header(self._definitions())

    def _definitions(self) -> list[dict[str, Json]]:
        return [tool.definition() for tool in self.tools.values()]

    def announce(
        self, session: Session, turn: int, step: int, *, starts_series: bool
    ) -> tuple[list[AppendEvent], int]:
        """Return what must be logged before the next request, and the generation it then has.

        That is: the prompt where it changed, the header where group N asks for one, the context
        where it changed.

        Args:
            starts_series: whether a plugin asked for a new series (R197).
        """
        takes = self.capabilities
        prompt = self.prompt.wishes(
            session,
            self.settings.system_prompt,
            turn,
            step,
            in_history=takes.system_prompt_update == "in-history",
        )
        replacements = sum(
            1 for wish in prompt if (wish.options or {}).get("surfaceOp") != "append"
        )
        latest = session.latest("request/header")
        has_moved = session.content_generation != self.generation or replacements > 0
        header = next_header(
            self.header(),
            baseline=None if latest is None else latest.data["header"],
            is_logged=self.is_header_logged,
            starts_series=starts_series or has_moved,
        )
        wishes = [*prompt, *([] if header is None else [AppendEvent("request/header", header)])]
        wishes += self._context(session, takes)
        return wishes, session.content_generation + replacements

    def _context(self, session: Session, takes: Capabilities) -> Sequence[AppendEvent]:
        """Return the `request/context` to write, none if nothing in it changed (R199)."""
        model = self.settings.model
        context: dict[str, Json] = {"provider": model.provider, "model": model.model}
        if takes.context_window is not None:
            context["contextWindow"] = takes.context_window
        if takes.system_prompt_update is not None:
            context["systemPromptUpdate"] = takes.system_prompt_update
        if self.settings.access_path is not None:
            context["accessPath"] = self.settings.access_path
        latest = session.latest("request/context")
        if latest is not None and dict(latest.data) == context:
            return ()
        return (AppendEvent("request/context", context),)


def routes_by_name(routes: Route | Iterable[Route]) -> dict[str, Route]:
    """Return one route or several by their names.

    Raises:
        AgentError: two have one name.
    """
    several = routes if isinstance(routes, Iterable) else (routes,)
    named: dict[str, Route] = {}
    for route in several:
        if route.provider in named:
            raise AgentError(f"two routes are called {route.provider!r}")
        named[route.provider] = route
    return named


def tools_by_name(tools: Iterable[Tool | Callable[..., object]]) -> dict[str, Tool]:
    """Return tools by their names; functions are made tools.

    Raises:
        AgentError: two have one name.
        ToolDefinitionError: a function cannot be offered as a tool.
    """
    named: dict[str, Tool] = {}
    for given in tools:
        made = given if isinstance(given, Tool) else tool(given)
        if made.name in named:
            raise AgentError(f"two tools are called {made.name!r}")
        named[made.name] = made
    return named
