"""Opening the sessions of a store: the store, the plugins in force, and the host over both."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from everfold.host.plugins import find_plugins, registered
from everfold.host.sessions import Sessions
from everfold.plugins.plugin import Plugin
from everfold.session.deciding import DecisionMeans
from everfold.store.urls import open_store


@contextmanager
def open_sessions(
    url: str,
    *,
    plugins: Iterable[Plugin] | None = None,
    create: bool = True,
    read_only: bool = False,
    means: DecisionMeans | None = None,
    cached: int = 128,
    snapshot_every: int = 1000,
) -> Iterator[Sessions]:
    """Host the sessions of the store that a URL names; leaving the block closes it.

    with open_sessions("sqlite:///agents.db") as sessions:
        session = sessions.create()

    Args:
        url: `sqlite:///file`, `postgresql://…`; see `everfold.store.urls.open_store`.
        plugins: those in force, in this order; every installed one if None.
        create: make the store if there is none; never with `read_only`.
        read_only: refuse every write, snapshots included.
        means: clock, ids and the cap of an event's size; the system's if None.
        cached: how many sessions stay folded in memory.
        snapshot_every: a snapshot is stored each time this many events came; 0 for never.

    Raises:
        PluginError, ProjectionDuplicateError: a plugin cannot be used.
        StoreError: the store cannot be opened; its code says why.
    """
    chosen = [found.plugin for found in find_plugins()] if plugins is None else plugins
    with (
        registered(chosen) as composition,
        open_store(url, create=create, read_only=read_only) as store,
    ):
        yield Sessions(
            store,
            composition,
            means=means,
            cached=cached,
            snapshot_every=0 if read_only else snapshot_every,
        )
