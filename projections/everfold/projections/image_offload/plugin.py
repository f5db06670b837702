"""The image-offload plugin, as the entry point `image-offload` names it."""

from everfold.plugins.plugin import Plugin
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD, PLUGIN

plugin = Plugin(
    name=PLUGIN,
    projections=(IMAGE_OFFLOAD,),
    summary="Omits the oldest images of a conversation, durably, by image/offload events.",
)
