"""Finding plugins by their entry points, and keeping them registered in one composition.

Built-in plugins come by the same door as others. A plugin that cannot be used stops the start: a
host that went on without it would refuse the logs that need it later, one by one.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from everfold.plugins.plugin import Plugin, PluginError, scope
from everfold.plugins.read_models import ReadModelDuplicateError, ReadModels
from everfold.session.composition import Composition

GROUP = "everfold.plugins"
"""The entry-point group in which packages name their plugins."""


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plugin that is installed, and where it came from.

    Attributes:
        distribution: the installed package that names it.
        version: that package's version.
        source: the object that the entry point names, as `module:attribute`.
    """

    plugin: Plugin
    distribution: str
    version: str
    source: str


def find_plugins(names: Collection[str] | None = None) -> tuple[FoundPlugin, ...]:
    """Return the installed plugins in order of name.

    Args:
        names: which ones; all if None.

    Raises:
        PluginError: one is not installed, cannot be loaded, is no plugin, or has the name of
            another one; the message names it.
    """
    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    if names is not None:
        _check_installed(names, found)
        found = [entry for entry in found if entry.name in names]
    _check_single(found)
    return tuple(_load(entry) for entry in found)


@contextmanager
def registered(plugins: Iterable[Plugin]) -> Iterator[Composition]:
    """Yield a composition with these plugins in force; leaving it unregisters in reverse order.

    Raises:
        PluginError: one cannot be used; nothing stays registered.
        ProjectionDuplicateError: two own one event type (R110).
    """
    with ExitStack() as scopes:
        composition = Composition()
        for plugin in plugins:
            scopes.enter_context(scope(composition, plugin))
        yield composition


def read_models_of(plugins: Iterable[Plugin]) -> ReadModels:
    """Return a registry of the read models that these plugins bring.

    Raises:
        PluginError: two have one name; the message names the plugin that came second.
    """
    models = ReadModels()
    for plugin in plugins:
        for model in plugin.read_models:
            try:
                models.register(model)
            except ReadModelDuplicateError as error:
                raise PluginError(plugin.name, f"cannot be used: {error}") from error
    return models


def _load(entry: EntryPoint) -> FoundPlugin:
    try:
        plugin = entry.load()
    except Exception as error:
        # Importing a stranger's module may raise anything.
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(
            entry.name, f"{_whence(entry)} cannot be loaded: {reason}; repair or uninstall it"
        ) from error
    if not isinstance(plugin, Plugin):
        raise PluginError(
            entry.name, f"{_whence(entry)} is {type(plugin).__name__}, not an everfold Plugin"
        )
    if plugin.name != entry.name:
        raise PluginError(
            entry.name,
            f"{_whence(entry)} calls itself {plugin.name!r}; both names must be the same",
        )
    distribution = entry.dist
    name, version = ("", "") if distribution is None else (distribution.name, distribution.version)
    return FoundPlugin(plugin, name, version, entry.value)


def _whence(entry: EntryPoint) -> str:
    package = "" if entry.dist is None else f" of package {entry.dist.name} {entry.dist.version}"
    return f"({entry.value}{package})"


def _check_installed(names: Collection[str], found: Iterable[EntryPoint]) -> None:
    installed = {entry.name for entry in found}
    for name in names:
        if name not in installed:
            known = ", ".join(sorted(installed)) or "none"
            raise PluginError(name, f"is not installed; installed are: {known}")


def _check_single(found: Iterable[EntryPoint]) -> None:
    seen: dict[str, EntryPoint] = {}
    for entry in found:
        other = seen.setdefault(entry.name, entry)
        if other is not entry:
            raise PluginError(
                entry.name, f"is there twice: {_whence(other)} and {_whence(entry)}; uninstall one"
            )
