"""JSON of one line, read without forgiveness: what it cannot keep is refused, or repaired if asked.

A line as the reference system writes it is read by the C decoder and compared with its own
rewriting; only a line that differs is read a second time, slowly, to find out why.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import NoReturn

import orjson

from everfold.session.errors import LosslessError
from everfold.session.frozen import Json
from everfold.session.lossless import MAX_DEPTH, MAX_WHOLE

REPLACEMENT = "\ufffd"
_SURROGATE = re.compile("[\ud800-\udfff]")
_RAW_BYTES = re.compile("[\udc80-\udcff]+")
# What stands for bytes that are not UTF-8, until the field they are in is known.
_BAD_BYTES = "\udc80"
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
# The payload may be as deep as an append's, and stands in a record.
_LINE_DEPTH = MAX_DEPTH + 1
_NUL_RUN = re.compile(rb"\0{2,}")
_LONGEST_WHOLE = 17


@dataclass(frozen=True, slots=True)
class Repair:
    """Text that was not valid Unicode and was replaced.

    Attributes:
        path: the field, as in `data.content[0].text`.
        count: how many characters U+FFFD were put in.
    """

    path: str
    count: int


@dataclass(frozen=True, slots=True)
class _Fault:
    """Stands in a decoded value for a part that cannot be kept."""

    reason: str


def parse(line: bytes, *, repair: bool = False) -> tuple[Json, list[Repair]]:
    """Return the value that a line holds, and what was replaced in it.

    Whole numbers over 2^53 in plain digits come back as they are; the session's doors refuse them.

    Args:
        repair: put U+FFFD for what is not valid Unicode instead of refusing it.

    Raises:
        LosslessError: not JSON, too deep, a key twice, -0, a number that would change, or text
            that is not valid Unicode; the message names the field.
    """
    _check_depth(line)
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_slowly(line, repair=repair)
    if orjson.dumps(value) == line:
        return value, []
    return _parse_slowly(line, repair=repair)


def _parse_slowly(line: bytes, *, repair: bool) -> tuple[Json, list[Repair]]:
    text = _RAW_BYTES.sub(_one_mark_each, line.decode("utf-8", "surrogateescape"))
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        _refuse_syntax(line, error)
    walk = _Walk(repair=repair)
    return walk.checked(value, ""), walk.repairs


def _check_depth(line: bytes) -> None:
    if line.count(b"[") + line.count(b"{") <= _LINE_DEPTH:
        return
    depth = 0
    for token in _TOKEN.finditer(line):
        first = token.group()[:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > _LINE_DEPTH:
            raise LosslessError("the line", f"is nested deeper than {MAX_DEPTH} levels")


def _one_mark_each(run: re.Match[str]) -> str:
    # The standard's count: one replacement for each maximal part of a broken sequence.
    return _BAD_BYTES * len(
        run.group().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )


def _refuse_syntax(line: bytes, error: json.JSONDecodeError) -> NoReturn:
    if not line.strip():
        raise LosslessError("the line", "is empty") from error
    run = _NUL_RUN.search(line)
    if run is not None:
        raise LosslessError(
            "the line",
            f"holds a run of {len(run.group())} NUL bytes from byte {run.start()} on; "
            "this part of the file was lost",
        ) from error
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LosslessError("the file", "is UTF-16; it must be UTF-8") from error
    raise LosslessError("the line", f"is not JSON: {error.msg} at character {error.pos}") from error


def _object(pairs: list[tuple[str, Json]]) -> Json:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    for key, _item in pairs:
        if key in seen:
            return _Fault(f"has the key {key!r} twice")
        seen.add(key)
    return value


def _whole(text: str) -> Json:
    if text == "-0":
        return _Fault("is -0, which JSON numbers of a log may not be")
    if len(text) > _LONGEST_WHOLE or abs(int(text)) > MAX_WHOLE:
        return _Fault(f"is {_short(text)}, beyond 2^53-1, where JSON numbers lose digits")
    return int(text)


def _number(text: str) -> Json:
    value = float(text)
    if math.isinf(value) or abs(value) > MAX_WHOLE:
        return _Fault(f"is {_short(text)}, beyond 2^53-1, where JSON numbers lose digits")
    if value == 0:
        mantissa = text.lower().partition("e")[0]
        if any(digit in mantissa for digit in "123456789"):
            return _Fault(f"is {_short(text)}, too small to be kept")
        if text.startswith("-"):
            return _Fault("is -0, which JSON numbers of a log may not be")
    return value


def _constant(text: str) -> Json:
    return _Fault(f"is {text}, which JSON cannot hold")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}…"


class _Walk:
    """One walk over a decoded value; gives a copy in which all text is valid."""

    def __init__(self, *, repair: bool) -> None:
        self._repair = repair
        self.repairs: list[Repair] = []

    def checked(self, value: Json, path: str) -> Json:
        """Return the value with its text made valid; refuse what stands for a fault."""
        if isinstance(value, str):
            return self._text(value, path or "the line")
        if isinstance(value, dict):
            return self._members(value, path)
        if isinstance(value, list):
            return [self.checked(item, f"{path}[{index}]") for index, item in enumerate(value)]
        if isinstance(value, _Fault):
            raise LosslessError(path or "the line", value.reason)
        return value

    def _members(self, value: dict[str, Json], path: str) -> Json:
        members: dict[str, Json] = {}
        for key, item in value.items():
            name = self._text(key, f"a key of {path or 'the line'}")
            if name in members:
                raise LosslessError(
                    path or "the line", f"has the key {name!r} twice after the repair"
                )
            members[name] = self.checked(item, f"{path}.{name}" if path else name)
        return members

    def _text(self, value: str, path: str) -> str:
        found = _SURROGATE.search(value)
        if found is None:
            return value
        if not self._repair:
            what = (
                "bytes that are not UTF-8"
                if found.group() == _BAD_BYTES
                else f"the lone surrogate U+{ord(found.group()):04X}"
            )
            raise LosslessError(path, f"is not valid Unicode: character {found.start()} is {what}")
        repaired, count = _SURROGATE.subn(REPLACEMENT, value)
        self.repairs.append(Repair(path, count))
        return repaired
