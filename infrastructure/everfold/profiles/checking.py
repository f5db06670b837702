"""Checking tables of a profile: an unknown key is named, and so are those that there are."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from everfold.profiles.errors import ProfileError

T = TypeVar("T")
Table = Mapping[str, Any]


class Strict(BaseModel):
    """A table whose keys are all known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def check_keys(table: Table, allowed: Collection[str], where: str) -> None:
    """Refuse a table with an unknown key.

    Args:
        where: the table, as the message is to name it.

    Raises:
        ProfileError: names the key and the allowed ones.
    """
    for key in table:
        if key not in allowed:
            near = get_close_matches(str(key), list(allowed), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ProfileError(
                f"{where} has no key {key!r}{hint} (its keys: {', '.join(sorted(allowed))})"
            )


def validated(kind: type[T], table: Table, where: str) -> T:
    """Return a table as a value of a model or a dataclass.

    Raises:
        ProfileError: a key is unknown, here or in a table inside; or a value makes no sense.
    """
    for inner, path in _tables(kind, table, where):
        check_keys(inner[1], names_of(inner[0]), path)
    try:
        return TypeAdapter(kind).validate_python(dict(table))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the table'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        # The cause would show the values.
        raise ProfileError(f"{where}: {faults}") from None


def names_of(kind: type[Any]) -> list[str]:
    """Return the keys of a table that a model or a dataclass describes."""
    if is_dataclass(kind):
        return [each.name for each in fields(kind)]
    names: list[str] = list(kind.model_fields)
    return names


def _tables(kind: type[Any], table: Table, where: str) -> Iterator[tuple[tuple[type, Table], str]]:
    """Yield a table and those inside it, each with its kind and its name."""
    yield (kind, table), where
    if is_dataclass(kind):
        return
    for name, field in kind.model_fields.items():
        inner = _model_in(field.annotation)
        value = table.get(name)
        if inner is None or value is None:
            continue
        for place, each in enumerate(value if isinstance(value, list) else [value]):
            path = f"{where}, {name}" + (f"[{place}]" if isinstance(value, list) else "")
            if isinstance(each, Mapping):
                yield from _tables(inner, each, path)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation holds: itself, optional, or a sequence of it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((each for each in found if each is not None), None)
