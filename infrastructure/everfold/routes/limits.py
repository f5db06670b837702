"""What each route and model takes: versioned data from a file in this package, under the user's settings.

The data is `limits.toml`. A route may be `like` another; the first of its `models` whose pattern
matches is laid over it; settings of the profile are laid over both.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from everfold.llm.budgets import ImageBudget, Representation

DATA_VERSION = 1

Table = Mapping[str, Any]


class LimitsError(ValueError):
    """Limits that are unknown or make no sense; the message names the route and the key."""

    code = "limits"


def _check_quantum(name: str, quantum: int, limit_name: str, limit: int | None) -> None:
    if limit is not None and quantum > max(limit, 1):
        raise ValueError(f"{name} {quantum} exceeds {limit_name} {limit}")


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ImagePlaces(_Data):
    """In which messages a model takes pictures; none at all for a text-only model (R258)."""

    user: bool = False
    tool: bool = False
    assistant: bool = False


class BudgetLimits(_Data):
    """A budget of a request's pictures (R238); a quantum may not exceed its limit (R250)."""

    representation: Representation = "base64"
    max_bytes: int | None = Field(default=None, ge=0)
    max_images: int | None = Field(default=None, ge=0)
    byte_quantum: int = Field(default=1, ge=1)
    count_quantum: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _quanta_fit(self) -> Self:
        _check_quantum("byte_quantum", self.byte_quantum, "max_bytes", self.max_bytes)
        _check_quantum("count_quantum", self.count_quantum, "max_images", self.max_images)
        return self

    def budget(self) -> ImageBudget:
        """Return the budget in the domain's words."""
        return ImageBudget(
            self.representation,
            self.max_bytes,
            self.max_images,
            self.byte_quantum,
            self.count_quantum,
        )


class RequestVersion(_Data):
    """The form in which pictures are sent: pixels of the longer side, raw bytes, media types."""

    max_edge: int = Field(default=2000, ge=1)
    max_bytes: int = Field(default=3_932_160, ge=1)
    media_types: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp", "image/gif")


class ToolIds(_Data):
    """Which tool-call ids a provider takes: characters of a regular expression's class, and how many."""

    alphabet: str = "a-zA-Z0-9_-"
    max_length: int = Field(default=64, ge=8)
    exact_length: int | None = Field(default=None, ge=8)


class ImageTokens(_Data):
    """What a picture costs: `area` pixels/`divisor`, `tiles` `base` + `tile` for each 512 px square."""

    kind: Literal["area", "tiles", "fixed"] = "tiles"
    divisor: int = Field(default=750, ge=1)
    base: int = Field(default=85, ge=0)
    tile: int = Field(default=170, ge=0)


class Thinking(_Data):
    """How a model is told to think (Anthropic): by a budget of tokens, or by the effort's name alone.

    Attributes:
        efforts: the reasoning efforts that there are, and the tokens of each where `kind` is `budget`.
    """

    kind: Literal["budget", "adaptive"] = "budget"
    efforts: Mapping[str, int] = {}


class RouteLimits(_Data):
    """Everything that is known about what a model takes on a route.

    Attributes:
        images: in which messages.
        context_window: tokens; `max_output_tokens` those of an answer, asked for where a provider
            wants to be told.
        thinking: what reasoning efforts mean.
        system_prompt_update: "in-history" where later system messages are read in place.
        files: budget of pictures that are uploaded and referred to; None where there are no files.
        inline: budget of pictures that travel in the body.
        max_body_bytes: of the JSON body; `body_quantum` is how much is freed at once.
        max_image_bytes: of one picture as it is encoded.
        max_edge: pixels of the longer side of any picture.
        many_images: with more pictures than this, `many_images_edge` holds instead.
        silent_failure_bytes: bodies beyond this may fail with server errors or empty answers
            because of their size.
        request_version: the form in which pictures are sent.
        tool_ids: which tool-call ids are taken.
        image_tokens: what a picture costs.
    """

    images: ImagePlaces = ImagePlaces()
    context_window: int | None = Field(default=None, ge=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    thinking: Thinking = Thinking()
    system_prompt_update: Literal["in-history"] | None = None
    files: BudgetLimits | None = None
    inline: BudgetLimits = BudgetLimits()
    max_body_bytes: int | None = Field(default=None, ge=1)
    body_quantum: int = Field(default=1, ge=1)
    max_image_bytes: int | None = Field(default=None, ge=1)
    max_edge: int | None = Field(default=None, ge=1)
    many_images: int | None = Field(default=None, ge=0)
    many_images_edge: int | None = Field(default=None, ge=1)
    silent_failure_bytes: int | None = Field(default=None, ge=1)
    request_version: RequestVersion = RequestVersion()
    tool_ids: ToolIds = ToolIds()
    image_tokens: ImageTokens = ImageTokens()

    @model_validator(mode="after")
    def _quantum_fits(self) -> Self:
        _check_quantum("body_quantum", self.body_quantum, "max_body_bytes", self.max_body_bytes)
        return self

    @property
    def is_text_only(self) -> bool:
        """Whether the model takes no picture anywhere."""
        return not (self.images.user or self.images.tool or self.images.assistant)


@dataclass(frozen=True)
class Limits:
    """The limits of one route for each of its models.

    Args:
        route: a name of `limits.toml`.
        settings: laid over the data; may hold `models`, a list of tables with `match`.

    Raises:
        LimitsError: the route or a key is unknown, or a value makes no sense.
    """

    route: str
    settings: Table = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.of("")
        for entry in self.settings.get("models", ()):
            self.of(str(entry.get("match", "")))

    def of(self, model: str) -> RouteLimits:
        """Return what `model` takes."""
        table = _laid_over(_known(self.route, model), _of_model(self.settings, model, self.route))
        try:
            return RouteLimits.model_validate(table)
        except ValidationError as error:
            raise LimitsError(_said(self.route, error)) from error


def route_names() -> list[str]:
    """Return the names that limits are known for."""
    return sorted(_data()["routes"])


@cache
def _data() -> Table:
    text = resources.files("everfold.routes").joinpath("limits.toml").read_text("utf-8")
    data = tomllib.loads(text)
    if data["version"] != DATA_VERSION:
        raise LimitsError(f"limits.toml has version {data['version']}, not {DATA_VERSION}")
    return data


def _known(route: str, model: str) -> Table:
    routes = _data()["routes"]
    if route not in routes:
        raise LimitsError(f"no limits are known for route {route!r}; known: {route_names()}")
    table = _of_model(routes[route], model, route)
    parent = table.get("like")
    if parent is None:
        return table
    own = {key: value for key, value in table.items() if key != "like"}
    return _laid_over(_known(parent, model), own)


def _of_model(table: Table, model: str, route: str) -> Table:
    """Return a table without its `models`, the matching one of them laid over it."""
    base = {key: value for key, value in table.items() if key != "models"}
    for entry in table.get("models", ()):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("match"), str):
            raise LimitsError(f"route {route!r}: an entry of 'models' has no text 'match'")
        if fnmatchcase(model, entry["match"]):
            own = {key: value for key, value in entry.items() if key != "match"}
            return _laid_over(base, own)
    return base


def _laid_over(below: Table, above: Table) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        both_tables = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = _laid_over(old, value) if both_tables and old is not None else value
    return result


def _said(route: str, error: ValidationError) -> str:
    faults = "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'limits'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)
    )
    return f"limits of route {route!r}: {faults}"
