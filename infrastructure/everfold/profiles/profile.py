"""What a profile says, checked: the top of it here, the tables of routes where they are built."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from everfold.agent.settings import AgentSettings, Limits, ModelSettings
from everfold.llm.access_paths import AccessPathError, check_access_path
from everfold.llm.retrying import RetryPolicy
from everfold.profiles.checking import Strict, Table, check_keys, names_of, validated
from everfold.profiles.errors import ProfileError

LOCAL = "local"
"""Tools run where the attachments are, and read the store's own files."""


class ProfileTable(Strict):
    """The keys of a profile.

    Attributes:
        extends: a profile whose tables lie under this one's.
        about: one sentence for lists of profiles.
        store: URL, or path of an SQLite file.
        attachments: a folder, or a PostgreSQL URL; beside the store if left out.
        route: which of `routes` is asked.
        plugins: those that act, in this order; every installed one if left out.
        plugin: settings by plugin.
        access_path: where tools read attachments: a template, or `local` for the store's own files.
        tools: what the model may call: `module:name` of functions.
        retry, agent: as `everfold.agent.settings` has them.
    """

    extends: str | None = None
    about: str = ""
    store: str | None = None
    attachments: str | None = None
    system_prompt: str = ""
    route: str | None = None
    routes: Mapping[str, Mapping[str, Any]] = {}
    plugins: tuple[str, ...] | None = None
    plugin: Mapping[str, Mapping[str, Any]] = {}
    access_path: str | None = None
    tools: tuple[str, ...] = ()
    retry: Mapping[str, Any] = {}
    agent: Mapping[str, Any] = {}


class CallTable(Strict):
    """The keys of a route's table that say which model is asked, and how."""

    model: str = Field(min_length=1)
    reasoning_effort: str | None = None
    temperature: float | None = Field(default=None, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1)
    stop: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile that was read.

    Attributes:
        name: of a shipped one its name, else its path.
        folder: where relative paths in it start; None for a shipped one.
        routes: tables by the name that logs know the route by.
        plugins: None for every installed one.
        plugin_settings: by plugin.
        access_path: a template, or LOCAL.
    """

    name: str
    folder: Path | None
    about: str
    store: str | None
    attachments: str | None
    system_prompt: str
    route: str
    routes: Mapping[str, Table]
    plugins: tuple[str, ...] | None
    plugin_settings: Mapping[str, Table]
    tools: tuple[str, ...]
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: Limits = field(default_factory=Limits)
    access_path: str | None = None

    def table(self, provider: str | None = None) -> Table:
        """Return the table of a route, of the one that is asked if None.

        Raises:
            ProfileError: there is no such route.
        """
        name = self.route if provider is None else provider
        if name not in self.routes:
            raise ProfileError(
                f"profile {self.name!r} has no route {name!r}; its routes: "
                f"{', '.join(sorted(self.routes))}"
            )
        return self.routes[name]

    def where(self, provider: str) -> str:
        """Return how messages name the table of a route."""
        return f"profile {self.name!r}, [routes.{provider}]"

    def settings(self, provider: str | None = None, model: str | None = None) -> AgentSettings:
        """Return what an agent is set to.

        Args:
            provider: one of the routes, None for the one that is asked.
            model: another model than the route's own.

        Raises:
            ProfileError: a key or a value of the route's table makes no sense.
        """
        name = self.route if provider is None else provider
        table = self.table(name)
        own = {key: table[key] for key in names_of(CallTable) if key in table}
        call = validated(
            CallTable, {**own, **({} if model is None else {"model": model})}, self.where(name)
        )
        chosen = ModelSettings(
            name, call.model, call.reasoning_effort, call.temperature, call.max_tokens, call.stop
        )
        return AgentSettings(chosen, self.system_prompt, self.retry, self.limits, self.access_path)


def profile_of(table: Table, name: str, folder: Path | None) -> Profile:
    """Return the profile that a table describes.

    Raises:
        ProfileError: a key is unknown, or a value makes no sense.
    """
    where = f"profile {name!r}"
    read = validated(ProfileTable, table, where)
    if not read.routes:
        raise ProfileError(f"{where} has no route: give it a table [routes.NAME], or 'extends'")
    if read.plugins is not None:
        check_keys(read.plugin, read.plugins, f"{where}, [plugin]")
    made = Profile(
        name=name,
        folder=folder,
        about=read.about,
        store=read.store,
        attachments=read.attachments,
        system_prompt=read.system_prompt,
        route=_route(read, where),
        routes=read.routes,
        plugins=read.plugins,
        plugin_settings=read.plugin,
        tools=read.tools,
        retry=validated(RetryPolicy, read.retry, f"{where}, [retry]"),
        limits=validated(Limits, read.agent, f"{where}, [agent]"),
        access_path=_access_path(read.access_path, where),
    )
    _check_numbers(asdict(made.retry), f"{where}, [retry]")
    _check_numbers(asdict(made.limits), f"{where}, [agent]")
    made.table()
    return made


def _access_path(given: str | None, where: str) -> str | None:
    if given is not None and given != LOCAL:
        try:
            check_access_path(given)
        except AccessPathError as error:
            raise ProfileError(f"{where}: {error}; or write {LOCAL!r}") from None
    return given


def _route(read: ProfileTable, where: str) -> str:
    if read.route is not None:
        return read.route
    if len(read.routes) == 1:
        return next(iter(read.routes))
    raise ProfileError(
        f"{where} has {len(read.routes)} routes: say which one is asked, as "
        f"route = {next(iter(read.routes))!r} at its top"
    )


def _check_numbers(table: Table, where: str) -> None:
    for key, value in table.items():
        may_be_zero = key in ("max_retries", "base_ms", "cap_ms", "patience_ms", "gather_s")
        if not math.isfinite(value) or value < 0 or (value == 0 and not may_be_zero):
            least = "that is 0 or more" if may_be_zero else "above 0"
            raise ProfileError(f"{where}: {key} is {value}; it must be a number {least}")
