"""The stored form of an answer's stream: what the message beside it says is not stored again.

In a row, `stream` is a list of records as everywhere else, or an object, the short form of that
list: runs of pieces are cuts through a text of the message, the end of a block names the block that
it ended with, and times are told by the gap before them (docs/format.md). A stream is stored short
only if that is shorter, and if reading it back gives the same bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from everfold.session.digits import decode_numbers, encode_numbers
from everfold.session.frozen import Json

SHORTENED = "assistant/message"
"""The one type of event whose payload holds a message beside a stream."""

_RUNS = {
    "text-chunks": ("text", "text"),
    "reasoning-chunks": ("reasoning", "text"),
    "tool-call-chunks": ("tool-call", "arguments"),
}
"""For each kind of run: the type of the blocks that it adds up to, and the field of their text."""

_USAGE = "usage"


class ShortStreamError(ValueError):
    """A row's short stream does not go with the message beside it; the text says how."""


def stored_form(type_: str, data: bytes, payload: Json) -> bytes:
    """Return the bytes to store for a payload.

    Args:
        data: the payload as JSON.
        payload: the same, decoded from those bytes.
    """
    if type_ != SHORTENED:
        return data
    short = _shortened(payload)
    if short is None:
        return data
    form = orjson.dumps({**payload, "stream": short})
    if len(form) >= len(data):
        return data
    whole = with_whole_stream(type_, {**payload, "stream": short})
    return form if orjson.dumps(whole) == data else data


def with_whole_stream(type_: str, payload: Json) -> Json:
    """Return a stored payload as it was given: with all records of its stream.

    Raises:
        ShortStreamError: its short stream does not go with its message.
    """
    if type_ != SHORTENED or not isinstance(payload, dict):
        return payload
    if not isinstance(payload.get("stream"), dict):
        return payload
    return {**payload, "stream": _expanded(payload)}


def _shortened(payload: Mapping[str, Json]) -> Json | None:
    """Return the short form of a payload's stream, None if it holds no records, or other things too."""
    stream = payload["stream"]
    match stream:
        case [{"time": int(time)}, *_] | [{"time0": int(time)}, *_] if all(
            isinstance(record, dict) for record in stream
        ):
            cuts = _Cuts.through(payload, time)
            return {"time0": time, "records": [_short(record, cuts) for record in stream]}
        case _:
            return None


def _expanded(payload: Mapping[str, Json]) -> list[Json]:
    """Return the records that a payload's short stream stands for."""
    match payload:
        case {
            "stream": {"time0": int(time), "records": list(items)},
            "message": {"content": list()},
        }:
            cuts = _Cuts.through(payload, time)
            return [_whole(item, cuts) for item in items]
        case _:
            raise ShortStreamError("it has no time0, no records, or no message beside it")


@dataclass(slots=True)
class _Cuts:
    """How far a stream has got: in time, and through the texts of the message.

    Attributes:
        content: the blocks of the message.
        usage: the token counts beside it.
        time: of the last record that was shortened, in milliseconds since 1970 UTC.
    """

    content: Sequence[Json]
    usage: Json
    time: int
    _cut: dict[int, int] = field(default_factory=dict)

    @classmethod
    def through(cls, payload: Mapping[str, Json], time: int) -> "_Cuts":
        """Return the cuts before the first record of a payload's stream."""
        return cls(payload["message"]["content"], payload.get("usage"), time)

    def gap(self, time: int) -> int:
        """Go on to the time of a record; return how long after the last one's that is."""
        gap, self.time = time - self.time, time
        return gap

    def after(self, gap: int) -> int:
        """Go on by a gap; return the time of the record there."""
        self.time += gap
        return self.time

    def place(self, kind: str, text: str) -> int | None:
        """Return the first block whose text goes on with this one, None if there is none."""
        for place, block in enumerate(self.content):
            whole = _text_of(block, kind)
            if whole is not None and whole.startswith(text, self._cut.get(place, 0)):
                return place
        return None

    def take(self, kind: str, place: int, lengths: Sequence[int]) -> list[str]:
        """Cut the next pieces off a block's text.

        Raises:
            ShortStreamError: so much text is not left.
        """
        text = _text_of(self.block(place), kind) or ""
        end = self._cut.get(place, 0)
        pieces = []
        for length in lengths:
            begin, end = end, end + length
            pieces.append(text[begin:end])
        if end > len(text):
            raise ShortStreamError(f"block {place} holds no {end} characters of {kind}")
        self._cut[place] = end
        return pieces

    def block(self, place: int) -> Json:
        """Return a block of the message.

        Raises:
            ShortStreamError: it has none there.
        """
        if not 0 <= place < len(self.content):
            raise ShortStreamError(f"the message has no block {place}")
        return self.content[place]


def _text_of(block: Json, kind: str) -> str | None:
    """Return the text of a block that a run of this kind adds up to, None if it is no such block."""
    block_type, name = _RUNS[kind]
    if not isinstance(block, Mapping) or block.get("type") != block_type:
        return None
    text = block.get(name)
    return text if isinstance(text, str) else None


def _short(record: Json, cuts: _Cuts) -> Json:
    """Return a record's short form: a list; the record itself where it has none."""
    match record:
        case {"type": "chunk", "time": int(time), "chunk": dict(chunk)}:
            return [cuts.gap(time), *_short_chunk(chunk, cuts)]
        case {"type": str(kind), "time0": int(time), "dt": list(gaps)} if kind in _RUNS:
            short = _short_run(record, kind, gaps, cuts)
            return record if short is None else [cuts.gap(time), *short]
        case _:
            return record


def _short_chunk(chunk: Mapping[str, Json], cuts: _Cuts) -> list[Json]:
    match chunk:
        case {"type": "block-end", "index": int(index), "block": block} if block in cuts.content:
            return [index, cuts.content.index(block)]
        case {"type": "usage", "usage": usage} if usage == cuts.usage:
            return [_USAGE]
        case _:
            return [chunk]


def _short_run(
    record: Mapping[str, Json], kind: str, gaps: list[Json], cuts: _Cuts
) -> list[Json] | None:
    pieces = record.get(_pieces_field(kind))
    if not isinstance(pieces, list) or not pieces or not all(type(each) is str for each in pieces):
        return None
    if not all(type(gap) is int and gap >= 0 for gap in gaps):
        return None
    place = cuts.place(kind, "".join(pieces))
    if place is None:
        return None
    lengths = [len(piece) for piece in pieces]
    cuts.take(kind, place, lengths)
    names = [record[name] for name in ("id", "name") if name in record]
    texts = [encode_numbers(lengths), encode_numbers(gaps)]
    return [kind, record.get("index"), place, *texts, *names]


def _pieces_field(kind: str) -> str:
    return "args" if kind == "tool-call-chunks" else "texts"


def _whole(item: Json, cuts: _Cuts) -> Json:
    """Return the record that a short form stands for.

    Raises:
        ShortStreamError: it stands for none.
    """
    match item:
        case dict():
            return item
        case [int(gap), str(kind), index, int(place), str(lengths), str(gaps), *names] if (
            kind in _RUNS
        ):
            time = {"time0": cuts.after(gap), "index": index, "dt": _numbers(gaps)}
            named = dict(zip(("id", "name"), names, strict=False))
            pieces = {_pieces_field(kind): cuts.take(kind, place, _numbers(lengths))}
            return {"type": kind, **time, **named, **pieces}
        case [int(gap), *rest]:
            return {"type": "chunk", "time": cuts.after(gap), "chunk": _whole_chunk(rest, cuts)}
        case _:
            raise ShortStreamError(f"{item!r} is no record of a stream")


def _whole_chunk(rest: list[Json], cuts: _Cuts) -> Json:
    match rest:
        case [dict(chunk)]:
            return chunk
        case [int(index), int(place)]:
            return {"type": "block-end", "index": index, "block": cuts.block(place)}
        case ["usage"]:
            return {"type": "usage", "usage": cuts.usage}
        case _:
            raise ShortStreamError(f"{rest!r} is no chunk of a stream")


def _numbers(text: str) -> list[int]:
    try:
        return decode_numbers(text)
    except ValueError as error:
        raise ShortStreamError(str(error)) from error
