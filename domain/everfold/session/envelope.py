"""The checks of an event record's fields, and of the options of an append (groups A and I)."""

from collections.abc import Mapping
from typing import Literal

from everfold.session.errors import AppendIntentError, EnvelopeError, SurfaceOpError
from everfold.session.events import ABSENT, Absent, Event
from everfold.session.frozen import Json
from everfold.session.lossless import encode, natural, whole
from everfold.session.vocabulary import MESSAGE_TYPES

KEYS = frozenset(("type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable"))
SURFACE_KEYS = frozenset(("surfaceOp", "sourceEventSeqs"))


def check_record(record: object, where: str = "the event") -> Event:
    """Return the event that a record with the wire's field names describes.

    Args:
        where: what to call the record in a refusal.

    Raises:
        EnvelopeError: a field is missing, wrong or unknown (R2 to R8).
    """
    if not isinstance(record, dict):
        raise EnvelopeError(f"{where} is {_kind(record)}, not an object")
    fault = _fault(record)
    if fault is not None:
        raise EnvelopeError(f"{where}: {fault}", seq=natural(record.get("seq")))
    return Event.of({**record, "seq": whole(record["seq"]), "time": whole(record["time"])})


def _fault(record: Mapping[str, Json]) -> str | None:
    unknown = [key for key in record if key not in KEYS]
    if unknown:
        return f"the field {unknown[0]!r} is not one of an event"
    if not isinstance(record.get("type"), str):
        return f"type is {_kind(record.get('type'))}, not text"
    if natural(record.get("seq")) is None:
        return f"seq {record.get('seq')!r} is not a whole number from 0"
    if whole(record.get("time")) is None:
        return f"time {record.get('time')!r} is not a whole number of milliseconds"
    if "data" not in record:
        return "data is missing"
    if record.get("ignorable", True) is not True:
        return f"ignorable is {record['ignorable']!r}; it is true or it is left out"
    return None


def check_intent(type_: object, options: object) -> tuple[Json | Literal[Absent.ABSENT], ...]:
    """Return surfaceOp, sourceEventSeqs and ignorable of an append's options, `ABSENT` where left out.

    Raises:
        AppendIntentError: the options are no mapping, or hold what the type may not carry.
        SurfaceOpError: surface options on a type that makes no node (R135).
        EnvelopeError: the type is not text.
        LosslessError: the type is not valid Unicode.
    """
    if not isinstance(type_, str):
        raise EnvelopeError(f"type is {_kind(type_)}, not text")
    if not type_.isascii():
        encode(type_, "type")
    if not options and (options is None or isinstance(options, Mapping)):
        return ABSENT, ABSENT, ABSENT
    if not isinstance(options, Mapping):
        raise AppendIntentError(f"the options of {type_!r} are {_kind(options)}, not a mapping")
    if type_ in MESSAGE_TYPES:
        _check_keys(type_, options, SURFACE_KEYS)
        return options.get("surfaceOp", ABSENT), options.get("sourceEventSeqs", ABSENT), ABSENT
    surface = SURFACE_KEYS.intersection(options)
    if surface:
        raise SurfaceOpError(f"{type_!r} makes no message and may not carry {min(surface)}")
    _check_keys(type_, options, frozenset(("ignorable",)))
    if options["ignorable"] is not True:
        raise AppendIntentError(f"ignorable is {options['ignorable']!r}; it is True or left out")
    return ABSENT, ABSENT, True


def _check_keys(type_: str, options: Mapping[str, Json], allowed: frozenset[str]) -> None:
    for key in options:
        if key not in allowed:
            names = ", ".join(sorted(allowed))
            raise AppendIntentError(f"{type_!r} takes the options {names}, not {key!r}")


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
