"""What the records of an old file must be before a step takes them: whole, dense, of a known type.

The types are those that the field reference names for each version; nobody here knows which seqs
the data of others cite, so that these cannot be renumbered (R348).
"""

from collections.abc import Iterator

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.upgrading.numbered import Numbered, Record
from everfold.interchange.upgrading.packed import DELTAS, check_packed, is_packed
from everfold.session.envelope import check_record
from everfold.session.errors import EventSequenceError, SessionError, UnknownEventError
from everfold.session.vocabulary import CORE

_NEW = {"system/message", "image/offload", "tool/ptc-dispatch", "tool/ptc-dispatch-start"}
_ALWAYS = frozenset(declared.name for declared in CORE) - _NEW - {"assistant/attempt"}
_DISPATCH = frozenset(("tool/code-dispatch", "tool/code-dispatch-start"))

RENAMED = {
    "steering/message": "user/message",
    "compact/start": "compaction/start",
    "compact/summary": "compaction/summary",
    "compact/end": "compaction/end",
    "compact/prune": "compaction/prune",
}
"""Types of version 0 that have another name in version 1 (R347)."""

TYPES = {
    0: _ALWAYS | _DISPATCH | {DELTAS} | RENAMED.keys(),
    1: _ALWAYS | _DISPATCH | {DELTAS},
    2: _ALWAYS | _DISPATCH | {"assistant/attempt"},
}
"""The event types of each version that can be upgraded."""


def checked(records: Iterator[Numbered], version: int) -> Iterator[Numbered]:
    """Yield the records of a file of this version, each with its envelope and seq checked.

    Raises:
        ImportRefusedError: one is malformed, out of order, or of a type that cannot be upgraded.
    """
    due = 0
    for each in records:
        place = Numbered(each.line, due, each.record)
        try:
            first, count = _place(each.record, version)
            if first != due:
                raise EventSequenceError(f"the event has seq {first} where {due} is next", seq=due)
        except SessionError as error:
            raise place.refusal(error) from error
        _check_type(place, version)
        yield place
        due += count


def _place(record: Record, version: int) -> tuple[int, int]:
    """Return the first seq of a record, and how many it takes."""
    if version < 2 and is_packed(record):
        count = check_packed(record)
        return int(record["seq0"]), count
    return check_record(record).seq, 1


def _check_type(each: Numbered, version: int) -> None:
    is_kept = version == 2 and each.record.get("ignorable") is True
    if each.type in TYPES[version] or is_kept or (version < 2 and is_packed(each.record)):
        return
    reason = f"no event {each.type!r} of format version {version} can be brought to version 3"
    raise ImportRefusedError(reason, line=each.line, code=UnknownEventError.code, seq=each.seq)
