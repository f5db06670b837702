"""From version 1 to 2: stream deltas go into what settled them, and the inherited part gets a marker (R348).

A settlement is the `assistant/message` of the same turn and step; deltas that none follows become an
`assistant/attempt`, which stands where the last of them stood. So events are fewer, and every seq
that is cited is put in new numbers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.upgrading.numbered import Numbered, Record
from everfold.interchange.upgrading.packed import DELTAS, is_packed, last_time, stream_record
from everfold.interchange.upgrading.references import Renumbering, renumbered
from everfold.session.errors import SeedCutError, SessionError, SessionHeaderError, SettlementError
from everfold.session.frozen import Json
from everfold.session.lossless import natural
from everfold.session.state import END_SEED

MESSAGE = "assistant/message"
_ENDING = frozenset(
    (
        MESSAGE,
        END_SEED,
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "llm/retry",
        "compaction/start",
    )
)
"""After one of these no settlement of an earlier stream can come, but for the message itself."""


def header_from_1(header: Record) -> tuple[Record, int | None]:
    """Return the header of version 2, and how many events are inherited; None if it is no fork.

    Raises:
        ImportRefusedError: the length is none, or the header has a field of version 2.
    """
    fields = dict(header)
    is_fork, length = "seedLength" in fields, fields.pop("seedLength", None)
    reason = None
    if is_fork and natural(length) is None:
        reason = f"seedLength {length!r} is not a whole number from 0"
    elif "isSeeded" in fields:
        reason = "isSeeded is a field of formats from 2 on"
    if reason is not None:
        raise ImportRefusedError(reason, line=1, code=SessionHeaderError.code)
    return {**fields, "version": 2, "isSeeded": is_fork}, natural(length)


def records_from_1(
    records: Iterator[Numbered], inherited: int | None, created_ms: Json
) -> Iterator[Numbered]:
    """Yield the records of version 2.

    Args:
        inherited: how many events came with the fork.
        created_ms: when it was made.

    Raises:
        ImportRefusedError: an event cites none that is earlier, or the inherited part ends where
            no event ends.
    """
    return _Embedding(inherited, created_ms).run(records)


@dataclass(slots=True)
class _Stream:
    """Deltas that wait for their settlement."""

    turn: Json
    step: Json
    records: list[Record] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    last: Numbered | None = None
    is_finished: bool = False

    def is_of(self, data: Json) -> bool:
        """Tell whether something has the same turn and step."""
        same = isinstance(data, dict) and (data.get("turn"), data.get("step"))
        return bool(same == (self.turn, self.step))


class _Embedding:
    """One run over a log. What comes after the last delta is held until the stream is settled."""

    def __init__(self, inherited: int | None, created_ms: Json) -> None:
        self._inherited = inherited
        self._numbers = Renumbering()
        self._stream: _Stream | None = None
        self._held: list[Numbered] = []
        self._end = Numbered(1, 0, {"time": created_ms})

    def run(self, records: Iterator[Numbered]) -> Iterator[Numbered]:
        due = 0
        for each in records:
            due = each.seq + _count(each)
            if self._inherited is not None and each.seq >= self._inherited:
                each, made = self._marked(each)
                yield from self._unsettled()
                yield from map(self._emit, made)
            yield from self._take(each)
            self._end = each
        yield from self._unsettled()
        if self._inherited is not None:
            if self._inherited != due:
                raise self._cut_refusal(f"{self._inherited} events are inherited of {due}")
            yield self._emit(_marker(self._end, due))

    def _take(self, each: Numbered) -> Iterator[Numbered]:
        if each.type == DELTAS or is_packed(each.record):
            yield from self._delta(each)
        elif self._stream is not None and each.type == MESSAGE and self._stream.is_of(each.data):
            yield from self._settled(each, self._stream)
        else:
            if each.type in _ENDING:
                yield from self._unsettled()
            if self._stream is not None:
                self._held.append(each)
            else:
                yield self._emit(_with_stream(each, []) if each.type == MESSAGE else each)

    def _delta(self, each: Numbered) -> Iterator[Numbered]:
        data = each.data
        if not isinstance(data, dict) or not (is_packed(each.record) or "chunk" in data):
            raise each.refusal(SettlementError("a stream delta has no turn, step and chunk"))
        if self._stream is not None and (self._stream.is_finished or not self._stream.is_of(data)):
            yield from self._unsettled()
        yield from self._released()
        if self._stream is None:
            self._stream = _Stream(data.get("turn"), data.get("step"))
        self._stream.records.append(stream_record(each.record))
        self._stream.seqs += range(each.seq, each.seq + _count(each))
        self._stream.last = each
        self._stream.is_finished = _is_finish(data)

    def _settled(self, each: Numbered, stream: _Stream) -> Iterator[Numbered]:
        yield from self._released()
        self._stream = None
        sources = each.record.get("sourceEventSeqs")
        if isinstance(sources, list):
            own = frozenset(stream.seqs)
            kept = [seq for seq in sources if natural(seq) not in own]
            rest = {name: value for name, value in each.record.items() if name != "sourceEventSeqs"}
            record = {**rest, "sourceEventSeqs": kept} if kept else rest
            each = Numbered(each.line, each.seq, record)
        yield self._emit(_with_stream(each, stream.records), stream.seqs)

    def _unsettled(self) -> Iterator[Numbered]:
        """Yield the attempt that a stream without a message was, and what was held behind it."""
        stream, self._stream = self._stream, None
        if stream is not None and stream.last is not None:
            data = {"turn": stream.turn, "step": stream.step, "stream": stream.records}
            last = stream.last
            record = {"type": "assistant/attempt", "time": last_time(last.record), "data": data}
            yield self._emit(
                Numbered(last.line, last.seq, {**record, "seq": last.seq}), stream.seqs
            )
        yield from self._released()

    def _released(self) -> Iterator[Numbered]:
        held, self._held = self._held, []
        yield from map(self._emit, held)

    def _emit(self, each: Numbered, absorbed: Iterable[int] = ()) -> Numbered:
        try:
            record = renumbered(each.record, self._numbers)
        except SessionError as error:
            raise each.refusal(error) from error
        record["seq"] = self._numbers.give(each.seq, *absorbed)
        return Numbered(each.line, each.seq, record)

    def _marked(self, each: Numbered) -> tuple[Numbered, tuple[Numbered, ...]]:
        """Return the first own event, and the marker before it if it is none itself."""
        cut, self._inherited = self._inherited, None
        if each.seq != cut:
            raise self._cut_refusal(f"the {cut} inherited events end inside a stream")
        if each.type != END_SEED:
            return each, (_marker(each, each.seq),)
        data = each.data if isinstance(each.data, dict) else {}
        return each.changed(data={**data, "inherited": True}), ()

    def _cut_refusal(self, reason: str) -> ImportRefusedError:
        return ImportRefusedError(reason, line=1, code=SeedCutError.code)


def _marker(place: Numbered, seq: int) -> Numbered:
    time = place.record.get("time", place.record.get("time0", 0))
    data = {"inherited": True}
    record = {"type": END_SEED, "seq": seq, "time": time, "data": data}
    # Seq -1 is nobody's: nothing can cite the marker.
    return Numbered(place.line, -1, record)


def _with_stream(each: Numbered, stream: list[Record]) -> Numbered:
    if not isinstance(each.data, dict):
        return each
    if "stream" in each.data:
        raise each.refusal(SettlementError("stream is a field of format version 2"))
    return each.changed(data={**each.data, "stream": stream})


def _count(each: Numbered) -> int:
    if not is_packed(each.record):
        return 1
    data = each.record["data"]
    return len(data["args"] if "args" in data else data["texts"])


def _is_finish(data: Record) -> bool:
    chunk = data.get("chunk")
    return isinstance(chunk, dict) and chunk.get("type") == "finish"
