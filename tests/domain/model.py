"""A second, naive model of a log: it writes only valid events and knows what each does.

It shares no code with the domain, so that an agreement of the two says something.
"""

import copy
from dataclasses import dataclass
from typing import Any

Json = Any
Record = dict[str, Any]

INPUT = ("user/message", "tool/result")


@dataclass(frozen=True)
class Log:
    """A valid log, and what it shows the model.

    Attributes:
        records: event records with the wire's field names.
        nodes: the seqs on the surface, in order.
        messages: seq and message of each node that gives one, in order.
        inherited_count: seq of the last inherited marker; 0 without one.
    """

    records: tuple[Record, ...]
    nodes: tuple[int, ...]
    messages: tuple[tuple[int, Json], ...]
    replace_generation: int
    content_generation: int
    inherited_count: int
    is_seeded: bool
    is_turn_open: bool

    def header(self, session_id: str = "s") -> dict[str, Json]:
        """Return a session header that fits the log."""
        return {"version": 3, "id": session_id, "createdAt": 0, "isSeeded": self.is_seeded}


def images(content: list[Json]) -> list[Record]:
    """Return the image blocks of a content, those of tool results included, in order."""
    found: list[Record] = []
    for block in content:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "image":
            found.append(block)
        elif block.get("type") == "tool-result":
            found += images(block["content"])
    return found


class Writer:
    """Writes events one after another and keeps the surface as plain lists."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.nodes: list[int] = []
        self.shown: dict[int, Json] = {}
        self.omitted_in: set[int] = set()
        self.replaced = 0
        self.changed = 0
        self.turn: int | None = None
        self.turns = 0
        self.inherited: int | None = None

    # What there is to write about.

    @property
    def next_seq(self) -> int:
        return len(self.records)

    def type(self, seq: int) -> str:
        return str(self.records[seq]["type"])

    @property
    def is_head_system(self) -> bool:
        return bool(self.nodes) and self.type(self.nodes[0]) == "system/message"

    def retained(self, seq: int) -> list[int]:
        """Return the indexes of the images that an input node still shows."""
        found = images(self.shown[seq]["content"])
        return [index for index, each in enumerate(found) if each.get("offloaded") is not True]

    @property
    def with_images(self) -> list[int]:
        """The input nodes that still show images."""
        return [seq for seq in self.nodes if self.type(seq) in INPUT and self.retained(seq)]

    @property
    def tool_results(self) -> list[int]:
        return [seq for seq in self.nodes if self.type(seq) == "tool/result"]

    # Writing.

    def write(self, type_: str, data: Json, **more: Json) -> int:
        """Write an event that leaves the surface as it is, and return its seq."""
        seq = self.next_seq
        record = {"type": type_, "seq": seq, "time": 7 + seq, "data": data, **more}
        self.records.append(record)
        if type_ == "turn/start":
            self.turn = data["turn"]
        if type_ == "turn/end":
            self.turn = None
        if type_ == "session/end-seed" and data == {"inherited": True}:
            self.inherited = seq
        return seq

    def append(self, type_: str, data: Json, sources: list[int] | None = None) -> int:
        """Write a message at the end."""
        more: Record = {} if sources is None else {"sourceEventSeqs": sources}
        seq = self.write(type_, data, surfaceOp="append", **more)
        self.nodes.append(seq)
        self.shown[seq] = _message(type_, data)
        return seq

    def replace(
        self, type_: str, data: Json, first: int, last: int, more: tuple[int, ...] = ()
    ) -> int:
        """Write a message in place of the nodes at positions `first` to `last`."""
        hidden = self.nodes[first : last + 1]
        marker = {"op": "replace", "startSeq": hidden[0], "endSeq": hidden[-1]}
        sources = [*hidden, *(seq for seq in dict.fromkeys(more) if seq not in hidden)]
        seq = self.write(type_, data, surfaceOp=marker, sourceEventSeqs=sources)
        self.nodes[first : last + 1] = [seq]
        self.shown[seq] = _message(type_, data)
        self.replaced += 1
        self.changed += 1
        return seq

    def omit(self, targets: dict[int, list[int]]) -> int:
        """Write an `image/offload` of these image indexes by node."""
        listed = [{"seq": seq, "imageIndexes": indexes} for seq, indexes in targets.items()]
        written = self.write("image/offload", {"targets": listed})
        for seq, indexes in targets.items():
            message = copy.deepcopy(self.shown[seq])
            found = images(message["content"])
            for index in indexes:
                found[index]["offloaded"] = True
            self.shown[seq] = message
            self.omitted_in.add(seq)
        self.changed += 1
        return written

    def log(self) -> Log:
        """Return what was written."""
        pairs = tuple((seq, self.shown[seq]) for seq in self.nodes if self._gives(seq))
        return Log(
            records=tuple(self.records),
            nodes=tuple(self.nodes),
            messages=copy.deepcopy(pairs),
            replace_generation=self.replaced,
            content_generation=self.changed,
            inherited_count=self.inherited or 0,
            is_seeded=self.inherited is not None,
            is_turn_open=self.turn is not None,
        )

    def _gives(self, seq: int) -> bool:
        if self.type(seq) in INPUT or seq in self.omitted_in:
            return True
        return bool(self.shown[seq]["content"])


def _message(type_: str, data: Json) -> Json:
    return data if type_ == "user/message" else data["message"]
