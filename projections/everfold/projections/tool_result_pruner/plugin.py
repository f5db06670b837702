"""The tool-result-pruner plugin, as the entry point `tool-result-pruner` names it."""

from collections.abc import Mapping

from everfold.plugins.plugin import Mount, Plugin, PluginError
from everfold.projections.tool_result_pruner.cutting import PruneLimits
from everfold.projections.tool_result_pruner.trigger import Pruner

NAME = "tool-result-pruner"
_SETTINGS = ("threshold", "head", "tail", "min_saving")


def pruner(settings: Mapping[str, object]) -> Pruner:
    """Return the pruner that a profile's settings describe.

    Raises:
        PluginError: a setting is unknown, no whole number, or does not fit the others (R291).
    """
    numbers = {name: _whole(name, value) for name, value in settings.items()}
    saving = numbers.pop("min_saving", Pruner().min_saving)
    try:
        limits = PruneLimits(**numbers)
    except ValueError as error:
        raise PluginError(NAME, f"cannot be set up: {error}") from error
    return Pruner(limits, saving)


def _whole(name: str, value: object) -> int:
    if name not in _SETTINGS:
        raise PluginError(NAME, f"has no setting {name!r}; it has {', '.join(_SETTINGS)}")
    if type(value) is not int or value < 0:
        raise PluginError(NAME, f"takes a whole number from 0 for {name}, not {value!r}")
    return value


def mount(host: Mount) -> None:
    """Join the waterfalls before steps and after failed requests.

    Raises:
        PluginError: a setting is wrong.
    """
    made = pruner(host.settings)
    host.defer(host.waterfalls.pre_step.register(NAME, made.before_step))
    host.defer(host.waterfalls.request_error.register(NAME, made.after_overflow))


plugin = Plugin(
    name=NAME,
    summary="Shortens long tool results, durably, once that saves enough.",
    mount=mount,
)
