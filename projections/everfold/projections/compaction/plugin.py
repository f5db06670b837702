"""The compaction plugin, as the entry point `compaction` names it."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Protocol, runtime_checkable

from everfold.llm.route import Route
from everfold.plugins.plugin import Mount, Plugin, PluginError
from everfold.projections.compaction.automatic import AutomaticCompaction
from everfold.projections.compaction.engine import Compactor
from everfold.projections.compaction.retrying import Patience
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.compaction.watching import SessionWatch
from everfold.projections.compaction.wishes import REQUEST, RETRY, SKIPPED
from everfold.session.events import EventLike
from everfold.session.vocabulary import EventType

NAME = "compaction"

log = logging.getLogger("everfold.compaction")


@runtime_checkable
class ModelHost(Protocol):
    """What automatic compaction needs of a host besides a `Mount`: models, logs, and patience."""

    def route(self, provider: str) -> Route:
        """Return the route to a provider, by the name that logs know it by."""
        ...

    def log(self, session_id: str, first: int) -> Iterable[EventLike]:
        """Return the stored events of a session from a seq on."""
        ...

    @property
    def patience(self) -> Patience:
        """With which requests are sent again that failed for reasons that may pass."""
        ...


def settings_of(given: Mapping[str, object]) -> CompactionSettings:
    """Return the settings that a profile gives.

    Raises:
        PluginError: one is unknown, of the wrong kind, or out of its range.
    """
    known = {each.name: type(each.default) for each in fields(CompactionSettings)}
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise PluginError(NAME, f"has no setting {name!r}; it has {', '.join(known)}")
        kind = known[name]
        is_share = kind is float and type(value) is int
        if not is_share and type(value) is not kind:
            raise PluginError(NAME, f"takes {kind.__name__} for {name}, not {value!r}")
        chosen[name] = value
    try:
        return CompactionSettings(**chosen)
    except ValueError as error:
        raise PluginError(NAME, f"cannot be set up: {error}") from error


def mount(host: Mount) -> None:
    """Join the waterfalls before steps and after failed requests.

    A host that lends neither models nor logs gets no automatic compaction, and a warning in the
    program's own log.

    Raises:
        PluginError: a setting is wrong.
    """
    settings = settings_of(host.settings)
    if not isinstance(host, ModelHost):
        log.warning(
            "this host lends no models, logs and patience: there is no automatic compaction"
        )
        return
    compactor = Compactor(host.route, settings, host.waterfalls, host.patience)
    automatic = AutomaticCompaction(compactor, SessionWatch(host.log))
    host.defer(host.waterfalls.pre_step.register(NAME, automatic.before_step))
    host.defer(host.waterfalls.request_error.register(NAME, automatic.after_failure))


plugin = Plugin(
    name=NAME,
    event_types=(EventType(REQUEST), EventType(RETRY), EventType(SKIPPED)),
    summary="Summarises the older part of a conversation when its window fills up, or on request.",
    mount=mount,
)
