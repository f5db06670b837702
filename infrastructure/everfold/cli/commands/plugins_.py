"""`everfold plugins`: what is installed."""

import click

from everfold.cli import output
from everfold.cli.options import json_option
from everfold.host.plugins import FoundPlugin, find_plugins, registered
from everfold.session.frozen import Json


@click.command("plugins")
@json_option
def command(as_json: bool) -> None:
    """List the installed plugins: name, event types, version, and where each comes from.

    Every plugin is loaded and registered, as the other commands do; one that fails is named.
    """
    found = find_plugins()
    with registered(each.plugin for each in found):
        pass
    if as_json:
        output.document({"plugins": [_record(each) for each in found]})
        return
    columns = ("NAME", "EVENT TYPES", "VERSION", "SOURCE")
    if not output.table(columns, map(_row, found), spare=("SOURCE", "VERSION")):
        output.say("no plugin is installed")


def _types(found: FoundPlugin) -> list[str]:
    plugin = found.plugin
    return [each.type for each in plugin.projections] + [each.name for each in plugin.event_types]


def _row(found: FoundPlugin) -> tuple[str, ...]:
    package = f"{found.distribution} {found.version}"
    return (found.plugin.name, ", ".join(_types(found)) or "-", package, found.source)


def _record(found: FoundPlugin) -> dict[str, Json]:
    plugin = found.plugin
    return {
        "name": plugin.name,
        "summary": plugin.summary,
        "projections": [
            {"type": each.type, "version": each.version} for each in plugin.projections
        ],
        "eventTypes": [each.name for each in plugin.event_types],
        "distribution": found.distribution,
        "version": found.version,
        "source": found.source,
    }
