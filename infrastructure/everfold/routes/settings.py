"""What a profile says about a route: where it is, how to log in, how long to wait."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.routes.limits import Limits
from everfold.routes.patience import Timeouts

NO_KEY = "everfold-has-no-key"
"""Given to the SDKs where there is no key, since they want one; it is never sent (`transports`)."""

_SHORTEST_SECRET = 8
"""Shorter words of a header are no secrets, and hiding them would garble what providers say."""

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class RouteSettingsError(ValueError):
    """A route's settings are unknown or make no sense; the message names them."""

    code = "route-settings"


class RouteSettings(BaseModel):
    """Settings that every route to a provider has; unknown keys are refused.

    Attributes:
        provider: the name of the route in logs.
        base_url: None for the vendor's own.
        api_key: better left to `api_key_env`, the variable that holds it. A vendor's usual variable
            is only read for the vendor's own server: another server must not get that key.
        headers: sent with every request.
        limits_of: the route of `limits.toml` whose limits hold; `limits` is laid over them.
        first_chunk_s: how long an answer may take to begin; `idle_s` between two signs of life,
            pings and comments included; `content_s` between two pieces that say something.
        connect_s: how long a connection may take.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str = Field(min_length=1)
    base_url: str | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    headers: Mapping[str, str] = {}
    limits_of: str
    limits: Mapping[str, Any] = {}
    first_chunk_s: Seconds = 300
    idle_s: Seconds = 300
    content_s: Seconds = 900
    connect_s: Seconds = 10

    def key(self) -> str | None:
        """Return the API key without the blanks and line ends around it, None if there is none."""
        if self.api_key is not None:
            return self.api_key.get_secret_value().strip() or None
        is_usual = "api_key_env" not in self.model_fields_set
        if self.api_key_env is None or (is_usual and self.base_url is not None):
            return None
        return os.environ.get(self.api_key_env, "").strip() or None

    def wire_key(self) -> str:
        """Return the key as an SDK is given it: `NO_KEY` for a server of one's own that wants none.

        Raises:
            LlmError: AUTH if the vendor's server would get no key, or no header can hold this one.
        """
        key, named = self.key(), self.api_key_env or "api_key"
        if key is None and self.base_url is not None:
            return NO_KEY
        if key is None:
            text = f"route {self.provider!r} has no API key; set {named}"
            raise LlmError(LlmFailure(text, FailureCode.AUTH))
        if not (key.isascii() and key.isprintable()):
            named = named if self.api_key is None else "api_key"
            text = f"the API key of route {self.provider!r} holds a character that no key has; set {named} anew"
            raise LlmError(LlmFailure(text, FailureCode.AUTH))
        return key

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no failure may hold: the key, and the longer words of headers."""
        key = self.key()
        said = {text for value in self.headers.values() for text in (value, *value.split())}
        words = [*((key,) if key else ()), *(t for t in said if len(t) >= _SHORTEST_SECRET)]
        return tuple(sorted(words, key=len, reverse=True))

    def timeouts(self) -> Timeouts:
        """Return how long to wait for an answer."""
        return Timeouts(self.first_chunk_s, self.idle_s, self.content_s)

    def route_limits(self) -> Limits:
        """Return the limits in force.

        Raises:
            LimitsError: they are unknown or make no sense.
        """
        return Limits(self.limits_of, self.limits)


SettingsT = TypeVar("SettingsT", bound=RouteSettings)


def settings_from(kind: type[SettingsT], table: Mapping[str, Any]) -> SettingsT:
    """Return settings from a profile's table.

    Raises:
        RouteSettingsError: a key is unknown or a value makes no sense; no value is shown, since it
            may be a key.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise RouteSettingsError(f"route settings: {faults}") from None
