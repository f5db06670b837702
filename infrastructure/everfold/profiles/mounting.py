"""Mounting plugins while a host runs: each joins what it wants, leaving undoes it in reverse order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from everfold.host.sessions import Sessions
from everfold.llm.route import Route
from everfold.plugins.plugin import Plugin, PluginError
from everfold.plugins.waterfalls import Waterfalls
from everfold.profiles.errors import ProfileError
from everfold.projections.compaction.retrying import IMPATIENT, Patience
from everfold.session.composition import Disposer
from everfold.session.errors import SessionError
from everfold.session.events import EventLike


@dataclass(slots=True)
class HostMount:
    """What one plugin joins; it also lends models, logs and patience, to plugins that ask for them."""

    settings: Mapping[str, object]
    waterfalls: Waterfalls
    sessions: Sessions
    route_to: Callable[[str], Route]
    patience: Patience
    _undo: ExitStack = field(default_factory=ExitStack)

    def defer(self, dispose: Disposer) -> None:
        """As `Mount.defer`."""
        self._undo.callback(dispose)

    def route(self, provider: str) -> Route:
        """Return the route to a provider, by the name that logs know it by."""
        return self.route_to(provider)

    def log(self, session_id: str, first: int) -> Iterable[EventLike]:
        """Return the stored events of a session from a seq on."""
        return self.sessions.log(session_id, first=first)


@contextmanager
def mounted(
    plugins: Sequence[Plugin],
    settings: Mapping[str, Mapping[str, object]],
    waterfalls: Waterfalls,
    sessions: Sessions,
    route_to: Callable[[str], Route],
    patience: Patience = IMPATIENT,
) -> Iterator[None]:
    """Keep plugins mounted, in this order, inside a `with` block.

    Args:
        patience: is lent to plugins that ask models, for requests that fail for reasons that may pass.

    Raises:
        PluginError: one failed to mount; it is named, and those before it are undone.
        ProfileError: there are settings for a plugin that cannot be set.
    """
    with ExitStack() as scopes:
        for plugin in plugins:
            own = settings.get(plugin.name, {})
            if plugin.mount is None:
                if own:
                    raise ProfileError(f"plugin {plugin.name!r} has no settings: {', '.join(own)}")
                continue
            undo = scopes.enter_context(ExitStack())
            _mount(plugin, HostMount(own, waterfalls, sessions, route_to, patience, undo))
        yield


def _mount(plugin: Plugin, place: HostMount) -> None:
    assert plugin.mount is not None, "only plugins that mount come here"
    try:
        plugin.mount(place)
    except SessionError:
        raise
    except Exception as error:
        # A stranger's code may raise anything.
        raise PluginError(
            plugin.name, f"failed to mount: {type(error).__name__}: {error}"
        ) from error
