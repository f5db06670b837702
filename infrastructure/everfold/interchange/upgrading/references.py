"""The seqs that an event cites, put in other numbers: on the surface, as sources, and inside data."""

from collections.abc import Mapping
from typing import Any

from everfold.interchange.upgrading.numbered import Record
from everfold.session.errors import PayloadError, SourceRefsError, SurfaceOpError
from everfold.session.frozen import Json
from everfold.session.lossless import natural

_REPLACE_KEYS = {"op", "start", "end"}

LISTS = {
    "session/title": ("messageSeqs",),
    "session/title-llm-request": ("messageSeqs",),
    "compaction/summary": ("shadowedSeqs",),
    "compaction/prune": ("shadowedSeqs",),
}
RANGES = {"compaction/summary": ("shadowedRange",), "compaction/prune": ("shadowedRange",)}
SINGLE = {"command/done": ("sourceEventSeq",)}
UPTO = {"session-log-deepseek/delivery-accepted": ("throughSeq",)}
"""Which members of an event's data are seqs of its own log, by type (field reference, section 3)."""


class Renumbering:
    """Gives each event of a log its number in another one; both count from 0.

    Attributes:
        next_seq: the number of the next event.
    """

    def __init__(self) -> None:
        self.next_seq = 0
        self._new: dict[int, int] = {}

    def give(self, *seqs: int) -> int:
        """Return the next number; from now on it stands for these old ones, if any."""
        number = self.next_seq
        self._new.update(dict.fromkeys(seqs, number))
        self.next_seq += 1
        return number

    def find(self, seq: Json) -> int | None:
        """Return the number of an earlier event, None if there is no such event."""
        old = natural(seq)
        return None if old is None else self._new.get(old)

    def upto(self, seq: Json) -> int:
        """Return the number of the last event at or before a seq; 0 if there is none yet."""
        old = natural(seq)
        while old is not None and old >= 0:
            if old in self._new:
                return self._new[old]
            old -= 1
        return 0


def renumbered(record: Record, numbers: Renumbering) -> Record:
    """Return a record with every seq that it cites in its new number; its own is left to the caller.

    Raises:
        SurfaceOpError: a replacement has the names of version 3, which are none of its own.
        SourceRefsError, PayloadError: an event is cited that is not earlier.
    """
    changed = dict(record)
    if "surfaceOp" in record:
        changed["surfaceOp"] = _operation(record, numbers)
    if isinstance(record.get("sourceEventSeqs"), list):
        sources = [_source(each, record, numbers) for each in record["sourceEventSeqs"]]
        changed["sourceEventSeqs"] = list(dict.fromkeys(sources))
    if isinstance(record["data"], dict):
        changed["data"] = _data(record["type"], record["data"], numbers)
    return changed


def _operation(record: Record, numbers: Renumbering) -> Json:
    operation = record["surfaceOp"]
    if not isinstance(operation, dict):
        return operation
    ends = [numbers.find(operation.get(name)) for name in ("start", "end")]
    if operation.keys() != _REPLACE_KEYS or operation["op"] != "replace" or None in ends:
        raise SurfaceOpError(
            f"surfaceOp {operation!r} is no replacement of earlier messages by op, start and end"
        )
    return {"op": "replace", "start": ends[0], "end": ends[1]}


def _source(source: Json, record: Record, numbers: Renumbering) -> int:
    number = numbers.find(source)
    if number is None:
        raise SourceRefsError(
            f"source {source!r} of the event at seq {record['seq']} is not earlier"
        )
    return number


def _data(type_: str, data: Mapping[str, Any], numbers: Renumbering) -> Record:
    changed = dict(data)
    for name in LISTS.get(type_, ()):
        if isinstance(data.get(name), list):
            changed[name] = [_cited(each, name, numbers) for each in data[name]]
    for name in RANGES.get(type_, ()):
        if isinstance(data.get(name), dict):
            changed[name] = {key: _cited(seq, name, numbers) for key, seq in data[name].items()}
    for name in SINGLE.get(type_, ()):
        if name in data:
            changed[name] = _cited(data[name], name, numbers)
    for name in UPTO.get(type_, ()):
        if name in data:
            changed[name] = numbers.upto(data[name])
    return changed


def _cited(seq: Json, name: str, numbers: Renumbering) -> int:
    number = numbers.find(seq)
    if number is None:
        raise PayloadError(f"data.{name} cites {seq!r}, which is no earlier event")
    return number
