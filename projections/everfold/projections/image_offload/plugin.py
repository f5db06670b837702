"""The image-offload plugin, as the entry point `image-offload` names it."""

from collections.abc import Mapping

from everfold.plugins.plugin import Mount, Plugin, PluginError
from everfold.projections.image_offload.bring_back import BRING_BACK
from everfold.projections.image_offload.planner import Planner
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD, PLUGIN
from everfold.projections.image_offload.recovery import recover_request, recover_summary


def mount(host: Mount) -> None:
    """Join the waterfalls: recovery always, the planner where the settings say `plan_ahead = true`.

    Raises:
        PluginError: a setting is unknown or of the wrong kind.
    """
    plans_ahead = _plans_ahead(host.settings)
    waterfalls = host.waterfalls
    host.defer(waterfalls.request_error.register(PLUGIN, recover_request))
    host.defer(waterfalls.summary_error.register(PLUGIN, recover_summary))
    if plans_ahead:
        host.defer(waterfalls.pre_step.register(PLUGIN, Planner().before_step))


def _plans_ahead(settings: Mapping[str, object]) -> bool:
    for name in settings:
        if name != "plan_ahead":
            raise PluginError(PLUGIN, f"has no setting {name!r}; it has plan_ahead")
    value = settings.get("plan_ahead", False)
    if not isinstance(value, bool):
        raise PluginError(PLUGIN, f"takes true or false for plan_ahead, not {value!r}")
    return value


plugin = Plugin(
    name=PLUGIN,
    projections=(IMAGE_OFFLOAD, BRING_BACK),
    summary="Omits the oldest images of a conversation, durably, by image/offload events.",
    mount=mount,
)
