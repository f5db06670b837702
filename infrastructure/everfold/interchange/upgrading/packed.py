"""Packed lines of versions 0 and 1: runs of stream deltas that take a seq each (R346)."""

from everfold.interchange.upgrading.numbered import Record
from everfold.session.errors import EnvelopeError
from everfold.session.frozen import Json
from everfold.session.lossless import natural, whole

DELTAS = "assistant/chunk"
"""The event of one stream delta."""

_TEXTS = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
_KEYS = frozenset(("type", "seq0", "time0", "data"))
_DATA_KEYS = frozenset(("turn", "step", "index", "dt"))


def is_packed(record: Json) -> bool:
    """Tell whether a line is a packed one and no event."""
    type_ = record.get("type") if isinstance(record, dict) else None
    return isinstance(type_, str) and type_ in _TEXTS


def check_packed(record: Record) -> int:
    """Return how many events a packed line stands for.

    Raises:
        EnvelopeError: it is malformed.
    """
    fault = _fault(record)
    if fault is not None:
        raise EnvelopeError(f"the packed line: {fault}", seq=natural(record.get("seq0")))
    return len(record["data"][_TEXTS[record["type"]]])


def _fault(record: Record) -> str | None:
    if record.keys() != _KEYS:
        return f"it has the fields {', '.join(map(str, record))}, not type, seq0, time0, data"
    if natural(record["seq0"]) is None or whole(record["time0"]) is None:
        return "seq0 or time0 is no whole number"
    data, texts = record["data"], _TEXTS[record["type"]]
    wanted = _DATA_KEYS | {texts} | ({"id"} if texts == "args" else set())
    if not isinstance(data, dict) or not wanted <= data.keys() <= wanted | {"name"}:
        return f"data has not just the fields {', '.join(sorted(wanted))}"
    parts, gaps = data[texts], data["dt"]
    if not isinstance(parts, list) or not parts or not all(isinstance(p, str) for p in parts):
        return f"{texts} is no list of texts"
    if not isinstance(gaps, list) or len(gaps) != len(parts) - 1:
        return f"dt is no list of {len(parts) - 1} gaps"
    return None if all(whole(gap) is not None for gap in gaps) else "a gap is no whole number"


def stream_record(record: Record) -> Record:
    """Return a delta, packed or not, as a record of a settlement's stream."""
    data = record["data"]
    if not is_packed(record):
        return {"type": "chunk", "time": record["time"], "chunk": data["chunk"]}
    rest = {name: value for name, value in data.items() if name not in ("turn", "step")}
    return {"type": record["type"], "time0": record["time0"], **rest}


def last_time(record: Record) -> Json:
    """Return when the last delta of a line came, in milliseconds."""
    return record["time0"] + sum(record["data"]["dt"]) if is_packed(record) else record["time"]
