"""Making routes of a profile's tables: one adapter for each way of talking to a provider.

The rule to keep: keys come from environment variables that the profile names. They go to the
adapter, and nowhere else.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from everfold.attachments.ports import AttachmentStore
from everfold.attachments.versions import RequestVersions
from everfold.llm.route import Route
from everfold.profiles.checking import Table, check_keys, names_of
from everfold.profiles.errors import MissingKeyError, ProfileError
from everfold.profiles.profile import CallTable, Profile
from everfold.profiles.recorded import RecordedSettings, recorded_route
from everfold.profiles.scripting import ScriptedSettings, scripted_route
from everfold.routes.limits import LimitsError, RouteLimits
from everfold.routes.settings import RouteSettings, RouteSettingsError, settings_from
from everfold.routes.uploads import UploadBook

_SCRIPTED = "scripted"
REPLAY = "replay"
_CALL = frozenset(names_of(CallTable))
_OURS = frozenset(("provider", "api_key"))
"""Settings that a profile does not hold: the name of the table, and what no file should hold."""
_SECRET_HEADERS = ("authorization", "api-key", "apikey", "cookie", "token", "secret")


@dataclass(frozen=True, slots=True)
class Means:
    """What routes are made with.

    Attributes:
        uploads: the book of pictures that providers hold.
        environ: the environment variables.
    """

    attachments: AttachmentStore
    uploads: UploadBook
    environ: Mapping[str, str] = field(repr=False)


Maker = Callable[[Any, RequestVersions, Means], Route]


@dataclass(frozen=True, slots=True)
class _Adapter:
    settings: type[RouteSettings]
    make: Maker


def route_of(profile: Profile, provider: str, means: Means) -> tuple[Route, tuple[str, ...]]:
    """Return a route of a profile, and the texts that nothing may show: what the environment held.

    Raises:
        ProfileError: its table makes no sense, or its SDK is not installed.
        MissingKeyError: the variable that holds its key is not set.
    """
    table, where = profile.table(provider), profile.where(provider)
    kind = adapter_of(table, where)
    own = {key: value for key, value in table.items() if key not in _CALL and key != "adapter"}
    if kind == REPLAY:
        return recorded_route(own, provider, where), ()
    if kind == _SCRIPTED:
        return scripted_route(own, provider, where), ()
    adapter = _adapter(kind, where)
    check_table(adapter.settings, own, where)
    given, secrets = _with_secrets(own, profile.name, provider, means.environ)
    try:
        settings = settings_from(adapter.settings, {**given, "provider": provider})
        made = adapter.make(settings, RequestVersions(means.attachments), means)
    except (RouteSettingsError, LimitsError, ImportError) as error:
        raise ProfileError(f"{where}: {error}") from None
    return made, secrets


def adapter_of(table: Table, where: str) -> str:
    """Return the name of a route's adapter.

    Raises:
        ProfileError: it names none, or one that there is not.
    """
    kind = table.get("adapter")
    if kind not in ADAPTERS:
        said = "names no adapter" if kind is None else "names an adapter that there is not"
        raise ProfileError(f"{where} {said}; adapter is one of {', '.join(ADAPTERS)}")
    return str(kind)


def check_table(settings: type[RouteSettings], table: Table, where: str) -> None:
    """Refuse keys that a route's table does not have, and secrets in it.

    Raises:
        ProfileError: names the key.
    """
    if "api_key" in table:
        raise ProfileError(
            f"{where} holds an api_key; keys do not belong into files: put it into an environment "
            "variable and name that with api_key_env"
        )
    allowed = {*names_of(settings), *_CALL, "adapter", "headers_env"} - _OURS
    check_keys(table, allowed, where)
    if table.get("base_url") is not None:
        _check_url(table["base_url"], where)
    limits = table.get("limits")
    if isinstance(limits, Mapping):
        check_keys(limits, {*names_of(RouteLimits), "models"}, f"{where}, limits")
    for name in table.get("headers", ()):
        if any(word in str(name).lower() for word in _SECRET_HEADERS):
            raise ProfileError(
                f"{where} holds the header {name!r}; name the environment variable that has it, as "
                f"headers_env = {{ {name} = 'VARIABLE' }}"
            )


def _check_url(base_url: Any, where: str) -> None:
    """Refuse what no request can be sent to; the text is not shown, it may hold a password."""
    try:
        parts = urlsplit(base_url) if isinstance(base_url, str) else urlsplit("")
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ProfileError(
            f"{where}: base_url is no URL of a server; it begins with https:// or http://, and a "
            "host follows"
        )


def check_profile(profile: Profile) -> None:
    """Check the tables of every route of a profile, without looking for keys.

    Raises:
        ProfileError: a key or a value makes no sense.
    """
    for provider, table in profile.routes.items():
        where = profile.where(provider)
        kind = adapter_of(table, where)
        own = {key: value for key, value in table.items() if key not in _CALL and key != "adapter"}
        profile.settings(provider)
        if kind == _SCRIPTED:
            check_keys(own, names_of(ScriptedSettings), where)
        elif kind == REPLAY:
            check_keys(own, names_of(RecordedSettings), where)
        else:
            _check_of_provider(kind, own, where, is_asked=provider == profile.route)


def _check_of_provider(kind: str, table: Table, where: str, *, is_asked: bool) -> None:
    """Check a table whose adapter needs an SDK; one that is not asked may lack it."""
    try:
        settings = ADAPTERS[kind]().settings
    except ImportError as error:
        if is_asked:
            raise ProfileError(f"{where}: {error}") from error
    else:
        check_table(settings, table, where)


def _with_secrets(
    table: Table, profile: str, provider: str, environ: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a table with its key and secret headers from the environment, and those texts."""
    given = dict(table)
    named = given.pop("api_key_env", None)
    # A key that the profile does not name is sent to no server.
    given["api_key_env"] = None
    if named is None and given.get("base_url") is None:
        raise ProfileError(
            f"profile {profile!r}, [routes.{provider}] names no api_key_env: the environment variable "
            "that holds its key"
        )
    secrets: list[str] = []
    if named is not None:
        secrets.append(_value(environ, str(named), profile, provider))
        given["api_key"] = SecretStr(secrets[0])
    variables = given.pop("headers_env", {})
    found = {name: _value(environ, str(var), profile, provider) for name, var in variables.items()}
    if found:
        given["headers"] = {**given.get("headers", {}), **found}
    return given, (*secrets, *found.values())


def _value(environ: Mapping[str, str], variable: str, profile: str, provider: str) -> str:
    value = environ.get(variable, "").strip()
    if not value:
        raise MissingKeyError(profile, provider, variable)
    return value


def _adapter(kind: str, where: str) -> _Adapter:
    """Import an adapter; each needs an SDK of its own."""
    try:
        return ADAPTERS[kind]()
    except ImportError as error:
        raise ProfileError(f"{where}: {error}") from error


def _openai_chat() -> _Adapter:
    from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute

    return _Adapter(ChatSettings, lambda given, versions, _: OpenAiChatRoute(given, versions))


def _openai_responses() -> _Adapter:
    from everfold.routes.openai_responses import OpenAiResponsesRoute, ResponsesSettings

    return _Adapter(
        ResponsesSettings,
        lambda given, versions, means: OpenAiResponsesRoute(given, versions, means.uploads),
    )


def _anthropic() -> _Adapter:
    from everfold.routes.anthropic_messages import AnthropicMessagesRoute, AnthropicSettings

    return _Adapter(
        AnthropicSettings, lambda given, versions, _: AnthropicMessagesRoute(given, versions)
    )


def _without_sdk() -> _Adapter:
    raise AssertionError("this adapter has a way of its own")


ADAPTERS: Mapping[str, Callable[[], _Adapter]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    _SCRIPTED: _without_sdk,
    REPLAY: _without_sdk,
}
"""The adapters by the name that profiles give them."""


def environment() -> Mapping[str, str]:
    """Return this process's environment variables."""
    return os.environ
