"""What a plugin is, and the scope that undoes what it registered.

Built-in plugins come through the same door as others: an entry point of the group
`everfold.plugins` that names a `Plugin`. A plugin's name is stored in logs and is forever.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from everfold.plugins.read_models import ReadModel
from everfold.plugins.waterfalls import Waterfalls
from everfold.session.composition import Composition, Disposer
from everfold.session.errors import SessionError
from everfold.session.projection import MessageProjection
from everfold.session.vocabulary import EventType


class PluginError(SessionError):
    """A plugin cannot be used; the message names it. Start-up stops (nothing stays registered)."""

    code = "plugin"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"plugin {name!r} {reason}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Plugin:
    """A named set of event types and message projections.

    Attributes:
        name: stable; the projections name it as their owner.
        projections: one interpreter per event type that the plugin owns.
        read_models: folds over stored events that say something of a session; they veto nothing.
        event_types: further types that it appends, log-only ones for instance.
        summary: one sentence for lists of plugins.
        mount: joins waterfalls and read models; called when a host starts, never by detached readers.
    """

    name: str
    projections: tuple[MessageProjection, ...] = ()
    event_types: tuple[EventType, ...] = ()
    read_models: tuple[ReadModel[Any], ...] = ()
    summary: str = ""
    mount: "Callable[[Mount], None] | None" = None


class Mount(Protocol):
    """What a plugin may join while a host runs; leaving the scope undoes it in reverse order."""

    @property
    def settings(self) -> Mapping[str, object]:
        """The plugin's own settings from the profile; unknown keys are its errors to raise."""
        ...

    @property
    def waterfalls(self) -> Waterfalls:
        """The chains to join; register with the plugin's own name and give the disposer to `defer`."""
        ...

    def defer(self, dispose: Disposer) -> None:
        """Have something undone when the plugin's scope ends."""
        ...


@contextmanager
def scope(composition: Composition, plugin: Plugin) -> Iterator[Composition]:
    """Keep a plugin registered inside a `with` block; leaving it unregisters in reverse order (R109).

    Raises:
        PluginError: a projection names another owner.
        ProjectionDuplicateError: a type has an interpreter; nothing stays registered (R110).
    """
    _check(plugin)
    with ExitStack() as undo:
        if plugin.event_types:
            undo.callback(composition.declare(plugin.event_types))
        for projection in plugin.projections:
            undo.callback(composition.register(projection))
        yield composition


def _check(plugin: object) -> None:
    if not isinstance(plugin, Plugin):
        raise PluginError(
            str(plugin),
            f"is {type(plugin).__name__}, not an everfold Plugin; find_plugins() gives those",
        )
    if not plugin.name:
        raise PluginError(plugin.name, "has no name")
    for projection in plugin.projections:
        if projection.plugin != plugin.name:
            raise PluginError(
                plugin.name,
                f"registers a projection of {projection.type!r} that says it belongs to "
                f"{projection.plugin!r}",
            )
