"""The plugin that brings the shipped read models, as the entry point `read-models` names it."""

from everfold.plugins.plugin import Plugin
from everfold.projections.read_models.shipped import SHIPPED

plugin = Plugin(
    name="read-models",
    read_models=SHIPPED,
    summary="Says a session's title, usage and cost, images, and how full its context is.",
)
