"""Python functions as tools: their schema from the signature, their arguments checked by pydantic."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_origin, get_type_hints, overload

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from everfold.agent.errors import ToolDefinitionError
from everfold.llm.wellformed import mended
from everfold.plugins.waterfalls import Cancellation
from everfold.session.frozen import Json

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes as a tool's name."""

_FORBIDDEN_KINDS = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of its call; a parameter of this type is filled in, not asked of the model.

    Attributes:
        cancellation: a long tool in a thread looks at it from time to time.
    """

    session_id: str
    turn: int
    step: int
    call_id: str
    cancellation: Cancellation


@dataclass(frozen=True, slots=True)
class ImageData:
    """The bytes of an image, not admitted yet; `media_type` is what it is said to be."""

    data: bytes
    name: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result of several parts.

    Attributes:
        content: a text, or texts, images and content blocks.
        is_error: whether the model is told that the call failed.
        meta: facts for people and programs; the model does not see them.
    """

    content: "str | Sequence[str | ImageData | Mapping[str, Json]]"
    is_error: bool = False
    meta: Mapping[str, Json] | None = None


class ToolArgumentsError(ValueError):
    """The model's arguments do not fit the tool; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    Attributes:
        parameters: JSON schema of the arguments, an object.
        function: takes the arguments by keyword; what it returns becomes the result.
        timeout_s: its own patience; the agent's limit if None.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    function: Callable[..., Any]
    is_async: bool
    timeout_s: float | None
    _model: type[BaseModel]
    _names: Mapping[str, str]
    _context: str | None

    def definition(self) -> dict[str, Json]:
        """Return the tool as a request header lists it."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }

    def bind(self, arguments: str, context: ToolContext) -> Callable[[], Any]:
        """Return the call of the function with a model's arguments.

        Args:
            arguments: JSON text as the model wrote it; empty text means no arguments.

        Raises:
            ToolArgumentsError: not JSON, not an object, or not what the function takes.
        """
        given = _parsed(arguments)
        try:
            checked = self._model.model_validate(given)
        except ValidationError as error:
            raise ToolArgumentsError(_faults(error)) from error
        values = {name: getattr(checked, field) for field, name in self._names.items()}
        if self._context is not None:
            values[self._context] = context
        return lambda: self.function(**values)


def _parsed(arguments: str) -> dict[str, Json]:
    try:
        given = orjson.loads(arguments) if arguments.strip() else {}
    except orjson.JSONDecodeError as error:
        raise ToolArgumentsError(f"The arguments are not valid JSON: {error}") from error
    if not isinstance(given, dict):
        kind = type(given).__name__
        raise ToolArgumentsError(f"The arguments are a JSON {kind}; they must be an object.")
    return given


def _faults(error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in fault["loc"])
        lines.append(f"- {place or 'arguments'}: {fault['msg']}")
    return "The arguments do not fit the tool's schema:\n" + "\n".join(lines)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout_s: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async; usable as a decorator.

    The schema comes from the annotations (`Annotated[int, Field(description=…)]` and every other
    pydantic type work), the description from the docstring.

    Raises:
        ToolDefinitionError: its name or a parameter cannot be offered to a model.
    """
    if function is not None:
        return _tool(function, name, description, timeout_s)
    return lambda wrapped: _tool(wrapped, name, description, timeout_s)


def _tool(
    function: Callable[..., Any], name: str | None, description: str | None, timeout_s: float | None
) -> Tool:
    named = getattr(function, "__name__", "") if name is None else name
    if not _NAME.fullmatch(named):
        raise ToolDefinitionError(
            named, "needs a name of 1 to 64 letters, digits, underscores and hyphens"
        )
    fields, names, context = _fields(function, named)
    try:
        model = create_model(f"{named}_arguments", __config__=_CONFIG, **fields)
        schema = model.model_json_schema(by_alias=True)
    except PydanticUserError as error:
        raise ToolDefinitionError(named, f"has a parameter without a schema: {error}") from error
    return Tool(
        name=named,
        description=(inspect.getdoc(function) or "") if description is None else description,
        parameters=_plain(schema),
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        timeout_s=timeout_s,
        _model=model,
        _names=names,
        _context=context,
    )


_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


def _fields(
    function: Callable[..., Any], tool_name: str
) -> tuple[dict[str, Any], dict[str, str], str | None]:
    """Return pydantic's fields, the parameter of each field, and the parameter of the context.

    Fields have names of their own, since a parameter may be called like one of pydantic's methods.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            tool_name, f"has an annotation that cannot be resolved: {error}"
        ) from error
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    context: str | None = None
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind in _FORBIDDEN_KINDS:
            raise ToolDefinitionError(
                tool_name, f"takes {parameter}; only parameters with a name can be filled in"
            )
        hint = hints.get(parameter.name, Any)
        if hint is ToolContext:
            context = parameter.name
            continue
        field = f"argument_{position}"
        names[field] = parameter.name
        fields[field] = (_described(hint), _field(parameter))
    return fields, names, context


def _described(hint: Any) -> Any:
    return hint if get_origin(hint) is Annotated or hint is not inspect.Parameter.empty else Any


def _field(parameter: inspect.Parameter) -> Any:
    if parameter.default is inspect.Parameter.empty:
        return Field(alias=parameter.name)
    return Field(default=parameter.default, alias=parameter.name)


def _plain(schema: dict[str, Any]) -> dict[str, Json]:
    """Return a schema without pydantic's made-up titles, as plain JSON."""
    schema.pop("title", None)
    for part in schema.get("properties", {}).values():
        part.pop("title", None)
    plain: dict[str, Json] = mended(schema)[0]
    return plain
