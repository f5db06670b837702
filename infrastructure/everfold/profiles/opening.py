"""Opening a profile: a running host with its sessions, attachments, plugins and routes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from everfold.agent.agent import Agent
from everfold.agent.tools import ImageData, Tool
from everfold.attachments.admission import Notice, Source, admit
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.ports import AttachmentStore
from everfold.host.access import HostedSession
from everfold.host.opening import open_sessions
from everfold.host.pausing import patience
from everfold.host.plugins import find_plugins
from everfold.host.sessions import Sessions
from everfold.llm.route import Route
from everfold.plugins.plugin import Plugin, PluginError
from everfold.plugins.waterfalls import Waterfalls
from everfold.profiles.adapters import Means, check_profile, environment, route_of
from everfold.profiles.attaching import attachments_of, open_attachments, open_uploads
from everfold.profiles.errors import ProfileError
from everfold.profiles.loading import located
from everfold.profiles.mounting import mounted
from everfold.profiles.profile import LOCAL, Profile
from everfold.profiles.tools import tools_of
from everfold.projections.compaction.engine import Compactor
from everfold.projections.compaction.plugin import NAME as COMPACTION
from everfold.projections.compaction.plugin import settings_of
from everfold.session.events import Origin
from everfold.session.frozen import Json
from everfold.store.file_urls import file_url

Wrap = Callable[[Route], Route]
"""Puts something around each route, a recorder for instance."""


@dataclass(slots=True)
class OpenProfile:
    """A running host. Made by `open_profile`.

    Attributes:
        waterfalls: the chains that the plugins joined.
        plugins: those that act.
        secrets: texts that no output may show: the keys of the routes made so far.
        on_notice: is told what admission changed about an image, and the image's name.
    """

    profile: Profile
    sessions: Sessions
    attachments: AttachmentStore
    means: Means
    waterfalls: Waterfalls = field(default_factory=Waterfalls)
    plugins: tuple[Plugin, ...] = ()
    wrap: Wrap = field(default=lambda route: route, repr=False)
    given_routes: Mapping[str, Route] = field(default_factory=dict, repr=False)
    secrets: list[str] = field(default_factory=list, repr=False)
    on_notice: Callable[[str, Notice], None] = field(default=lambda _name, _notice: None)
    _routes: dict[str, Route] = field(default_factory=dict, repr=False)

    def route(self, provider: str | None = None) -> Route:
        """Return a route of the profile, the one that is asked if None; each is made once.

        Raises:
            ProfileError: there is none, or its table makes no sense.
            MissingKeyError: its key is not in the environment.
        """
        name = self.profile.route if provider is None else provider
        if name not in self._routes:
            made = self.given_routes.get(name)
            if made is None:
                made, secrets = route_of(self.profile, name, self.means)
                self.secrets.extend(secrets)
            self._routes[name] = self.wrap(made)
        return self._routes[name]

    def agent(
        self,
        session_id: str,
        *,
        route: str | None = None,
        model: str | None = None,
        tools: Iterable[Tool | Callable[..., object]] = (),
        takes_over: bool = False,
        **more: Any,
    ) -> Agent:
        """Return an agent on a session, with the profile's model, prompt, tools and plugins.

        Args:
            route: another route of the profile than the one that it asks.
            model: another model than the route's own.
            tools: further tools.
            takes_over: whether to close what another process left open.
            more: as `Agent` takes them.

        Raises:
            ProfileError, MissingKeyError: as `route`.
        """
        profile = self.profile
        named = tools_of(profile.tools, f"profile {profile.name!r}", profile.folder)
        return Agent(
            self.sessions,
            session_id,
            self.route(route),
            replace(self.profile.settings(route, model), access_path=self.access_path()),
            tools=[*named, *tools],
            waterfalls=self.waterfalls,
            admit_images=self.admit,
            takes_over=takes_over,
            **more,
        )

    def access_path(self) -> str | None:
        """Return the template of where tools read attachments, None for nowhere.

        Raises:
            ProfileError: the profile says that they are files here, and they are not.
        """
        if self.profile.access_path != LOCAL:
            return self.profile.access_path
        if not isinstance(self.attachments, FileAttachments):
            raise ProfileError(
                f"profile {self.profile.name!r}: access_path is {LOCAL!r}, but the attachments are no "
                "files here; give a template of where tools can fetch them, with {id} in it"
            )
        return self.attachments.path_template()

    def compactor(self) -> Compactor:
        """Return what summarises sessions, set as the profile sets the plugin.

        Raises:
            PluginError: a setting makes no sense.
        """
        settings = settings_of(self.profile.plugin_settings.get(COMPACTION, {}))
        return Compactor(self.route, settings, self.waterfalls, patience(self.profile.retry))

    def acting(self) -> dict[str, Mapping[str, Any]]:
        """Return the plugins that act, with their settings."""
        given = self.profile.plugin_settings
        return {plugin.name: dict(given.get(plugin.name, {})) for plugin in self.plugins}

    def access(self, session_id: str, actor: str = "user") -> HostedSession:
        """Return one session, for plugins and decisions."""
        return HostedSession(self.sessions, session_id, Origin(actor=actor))

    def admit(self, images: Sequence[ImageData]) -> list[dict[str, Json]]:
        """Check and store images, all or none, and return their references.

        Raises:
            AdmissionError: names every image at fault; nothing was stored.
        """
        return self._admitted([Source(each.data, each.name, None, "image") for each in images])

    def attach(self, sources: Sequence[Source]) -> list[dict[str, Json]]:
        """Check and store images and files, all or none, and return the blocks that refer to them.

        Args:
            sources: each of a kind; the bytes of files are kept as they are.

        Raises:
            AdmissionError: names every source at fault; nothing was stored.
        """
        refs = self._admitted(sources)
        return [
            {"type": source.kind, "attachment": ref}
            for source, ref in zip(sources, refs, strict=True)
        ]

    def _admitted(self, sources: Sequence[Source]) -> list[dict[str, Json]]:
        notices: list[Notice] = []
        refs = admit(sources, self.attachments, notify=notices.append)
        for notice in notices:
            self.on_notice(sources[notice.index].name or "image", notice)
        return refs

    async def disconnect(self) -> None:
        """Close the connections that routes hold in the running event loop."""
        closers = [getattr(route, "close", None) for route in self._routes.values()]
        await asyncio.gather(*(close() for close in closers if close is not None))


@contextmanager
def open_profile(
    profile: Profile,
    *,
    store: str | None = None,
    create: bool = True,
    wrap: Wrap = lambda route: route,
    routes: Iterable[Route] = (),
    environ: Mapping[str, str] | None = None,
    means: Any = None,
) -> Iterator[OpenProfile]:
    """Run a host as a profile says; leaving the block unmounts the plugins and closes the store.

    Every installed plugin is registered, so that every log can be read; those that the profile
    names act. Routes are made when they are asked for, so that reading needs no key.

    Args:
        store: URL of another store than the profile's; in memory if neither names one.
        create: make the store if there is none.
        wrap: put around every route.
        routes: used in place of the profile's own, by their names.
        environ: where keys are looked up; this process's environment if None.
        means: clock, ids and caps of the host.

    Raises:
        ProfileError: the profile makes no sense, or not with this store of attachments.
        PluginError: a plugin is not installed, or failed; it is named.
        StoreError: the store or the attachments cannot be opened.
    """
    given = {route.provider: route for route in routes}
    check_profile(profile)
    url = store or _store_url(located(profile.store, profile.folder))
    found = {each.plugin.name: each.plugin for each in find_plugins()}
    acting = _acting(profile, found)
    place = attachments_of(url, located(profile.attachments, profile.folder))
    with ExitStack() as stack:
        sessions = stack.enter_context(
            open_sessions(url, plugins=found.values(), create=create, means=means)
        )
        attachments = stack.enter_context(open_attachments(place))
        uploads = stack.enter_context(open_uploads(place))
        tools = Means(attachments, uploads, environment() if environ is None else environ)
        host = OpenProfile(
            profile, sessions, attachments, tools, plugins=acting, wrap=wrap, given_routes=given
        )
        host.access_path()
        lent = patience(profile.retry)
        stack.enter_context(
            mounted(acting, profile.plugin_settings, host.waterfalls, sessions, host.route, lent)
        )
        yield host


def _store_url(named: str | None) -> str:
    """Return the URL of the store that a profile names: a URL, or the path of an SQLite file."""
    if named is None:
        return "sqlite://"
    return named if "://" in named else file_url(Path(named))


def _acting(profile: Profile, found: Mapping[str, Plugin]) -> tuple[Plugin, ...]:
    """Return the plugins that the profile has act, in its order."""
    known = ", ".join(sorted(found)) or "none"
    for name in (*(profile.plugins or ()), *profile.plugin_settings):
        if name not in found:
            raise PluginError(name, f"is not installed; installed are: {known}")
    chosen = list(found) if profile.plugins is None else profile.plugins
    return tuple(found[name] for name in chosen)
