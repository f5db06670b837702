"""A host that lends models and logs to plugins, and agents on it."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from everfold.agent.agent import Agent
from everfold.agent.settings import AgentSettings, ModelSettings
from everfold.host.access import HostedSession
from everfold.host.pausing import patience
from everfold.host.sessions import Sessions
from everfold.llm.retrying import RetryPolicy
from everfold.llm.route import Route
from everfold.plugins.waterfalls import Waterfalls
from everfold.projections.catalog import SHIPPED
from everfold.routes.scripted import ScriptedRoute
from everfold.session.composition import Disposer
from everfold.session.events import EventLike


class LendingMount:
    """What plugins join, on the sessions of one store, with the routes given here."""

    def __init__(
        self, sessions: Sessions, *routes: ScriptedRoute, settings: Mapping[str, object] = {}
    ) -> None:
        self.settings = settings
        self.waterfalls = Waterfalls()
        self.sessions = sessions
        self.routes = {route.provider: route for route in routes}
        self.patience = patience(RetryPolicy(base_ms=1, cap_ms=2))
        self._undo = ExitStack()

    def defer(self, dispose: Disposer) -> None:
        """Have something undone at the end."""
        self._undo.callback(dispose)

    def route(self, provider: str) -> Route:
        """Return a route by its name."""
        return self.routes[provider]

    def log(self, session_id: str, first: int) -> Iterable[EventLike]:
        """Return a session's events from a seq on."""
        return self.sessions.log(session_id, first=first)

    def leave(self) -> None:
        """End the plugins' scope."""
        self._undo.close()


def mounted(
    sessions: Sessions, *routes: ScriptedRoute, **settings: Mapping[str, object]
) -> LendingMount:
    """Return a host in which all shipped plugins are mounted.

    Args:
        settings: by name of the plugin, with `_` for `-`.
    """
    host = LendingMount(sessions, *routes)
    for plugin in SHIPPED:
        host.settings = settings.get(plugin.name.replace("-", "_"), {})
        if plugin.mount is None:
            continue
        plugin.mount(host)
    return host


def agent(host: LendingMount, session_id: str, model: str = "m", **facts: Any) -> Agent:
    """Return an agent on a session that asks the host's first route."""
    route = next(iter(host.routes.values()))
    settings = AgentSettings(
        ModelSettings(route.provider, model),
        facts.pop("prompt", "be brief"),
        RetryPolicy(base_ms=1, cap_ms=2),
    )
    return Agent(
        host.sessions,
        session_id,
        list(host.routes.values()),
        settings,
        waterfalls=host.waterfalls,
        jitter=lambda: 0.0,
        **facts,
    )


def access_to(host: LendingMount, session_id: str) -> HostedSession:
    """Return a session of the host."""
    return HostedSession(host.sessions, session_id)
