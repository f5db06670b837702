"""The surface: the ordered list of message-producing events that the model sees (group D).

The rule to keep: plan first, then apply. A plan is made of the history before the event and
may refuse; applying it cannot fail, and the plan made while deciding is the plan applied.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import overload

from everfold.session.book import EventBook, find_by_seq
from everfold.session.composition import Composition
from everfold.session.errors import (
    EventSequenceError,
    ProjectionMissingError,
    ReplaceCoverageError,
    ReplaceRangeError,
    SystemHeadError,
    ToolRewriteError,
)
from everfold.session.events import EventLike
from everfold.session.frozen import Json, json_equal
from everfold.session.growing import Growing
from everfold.session.lossless import natural
from everfold.session.placement import (
    Replace,
    check_earlier,
    check_unplaced,
    placement_of,
    sources_of,
)
from everfold.session.projection import MessageProjection, run
from everfold.session.vocabulary import MESSAGE_TYPES

_NO_MESSAGES: Mapping[int, Json] = MappingProxyType({})
_NO_PROJECTIONS: Mapping[str, MessageProjection] = MappingProxyType({})


def _no_messages() -> Mapping[int, Json]:
    return _NO_MESSAGES


def _no_projections() -> Mapping[str, MessageProjection]:
    return _NO_PROJECTIONS


@dataclass(frozen=True, slots=True)
class Surface:
    """What a log shows the model after its first events; a value.

    Attributes:
        nodes: seqs in surface order.
        messages: projected messages by seq; other nodes show what they stored.
        replace_generation: number of replacements so far (R74).
        content_generation: number of replacements and projection events so far (R75).
        used: the interpreters that this history depends on (R113).
        events: the message-producing events.
        base_seq: seq of the first event that was folded (R182).
        next_seq: seq of the next event.
    """

    events: EventBook
    nodes: Growing[int] = field(default_factory=Growing[int])
    messages: Mapping[int, Json] = field(default_factory=_no_messages)
    replace_generation: int = 0
    content_generation: int = 0
    used: Mapping[str, MessageProjection] = field(default_factory=_no_projections)
    base_seq: int = 0
    next_seq: int = 0

    @classmethod
    def empty(cls, base_seq: int = 0) -> "Surface":
        """Return the surface of a log, or of a window that starts at `base_seq`, with no event yet."""
        book = EventBook(Growing())
        return cls(events=book, base_seq=base_seq, next_seq=base_seq)


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement that took place: `seq` hid `shadowed`, from `start` to `end` (R71)."""

    seq: int
    start: int
    end: int
    shadowed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """The plan of an event that leaves the surface as it is."""


@dataclass(frozen=True, slots=True)
class Append:
    """The plan of a node at the end."""


@dataclass(frozen=True, slots=True)
class Hide:
    """The plan of a node in place of the nodes at positions `first` to `last`."""

    first: int
    last: int
    replacement: Replacement


@dataclass(frozen=True, slots=True)
class Project:
    """The plan of a projection event: the messages that change, and by whom."""

    projection: MessageProjection
    updates: Mapping[int, Json]


Plan = Pass | Append | Hide | Project
PASS = Pass()
"""The plan of every event that leaves the surface as it is."""

APPEND = Append()
"""The plan of every plain append: a message-producing event at the end, which cites no sources."""


class SurfaceFold:
    """One run of the fold from a surface on; `surface()` gives the value reached.

    It is the history that interpreters are shown, too.
    """

    def __init__(self, start: Surface, composition: Composition) -> None:
        self._start = start
        self._composition = composition
        self._definitions = composition.definitions
        self._nodes: list[int] | None = None if start.nodes else []
        self._added: list[int] = []
        self._positions: dict[int, int] | None = None
        self._events: list[EventLike] = []
        self._messages: dict[int, Json] = dict(start.messages)
        self.messages: Mapping[int, Json] = MappingProxyType(self._messages)
        self._used = dict(start.used)
        self._replaced = start.replace_generation
        self._changed = start.content_generation
        self.base_seq = start.base_seq
        self.next_seq = start.next_seq

    # What interpreters read.

    @property
    def nodes(self) -> Sequence[int]:
        """The current nodes in surface order."""
        return _Nodes(self)

    def event(self, seq: int) -> EventLike | None:
        """Return the message-producing event with this seq, None if there is none.

        Interpreters may ask for whatever a payload gave them; what is no seq has no event.
        """
        number = natural(seq)
        if number is None:
            return None
        if number >= self._start.next_seq:
            return find_by_seq(self._events, number)
        return self._start.events.find(number)

    # Planning.

    def plan(self, event: EventLike) -> Plan:
        """Return what this event would do, as the next of the log; nothing is changed.

        Raises:
            EventSequenceError, SurfaceError, SourceRefsError, ProjectionError: it may not
                happen here (order of the checks: R55, R70).
        """
        if natural(event.seq) != self.next_seq:
            raise EventSequenceError(
                f"the event has seq {event.seq!r} where {self.next_seq} is next", seq=self.next_seq
            )
        if event.type in MESSAGE_TYPES:
            return self._plan_node(event)
        projection = self._definitions.get(event.type)
        if (
            projection is None
            and event.ignorable
            and event.type not in self._composition.vocabulary
        ):
            return PASS
        check_unplaced(event)
        if projection is not None:
            return Project(projection, run(projection, event, self))
        if self._composition.needs_interpreter(event.type):
            raise ProjectionMissingError(event.type, seq=self.next_seq)
        return PASS

    def _plan_node(self, event: EventLike) -> Plan:
        if event.is_plain_append:
            return APPEND
        replace = placement_of(event)
        if replace is not None:
            check_earlier(event, replace)
        sources = sources_of(event)
        if replace is None:
            return APPEND
        return self._plan_replace(event, replace, sources)

    def _plan_replace(self, event: EventLike, replace: Replace, sources: frozenset[int]) -> Hide:
        seq = self.next_seq
        first, last = self._end_point(replace.start, seq), self._end_point(replace.end, seq)
        if first > last:
            raise ReplaceRangeError(
                f"node {replace.start} stands after node {replace.end} on the surface, so the "
                f"replacement at seq {seq} has no range",
                seq=seq,
            )
        shadowed = tuple(self._range(first, last))
        uncited = next((node for node in shadowed if node not in sources), None)
        if uncited is not None:
            raise ReplaceCoverageError(
                f"the replacement at seq {seq} hides node {uncited} and does not cite it", seq=seq
            )
        self._check_tool_rewrite(event, shadowed)
        self._check_head(event, first, last)
        return Hide(first, last, Replacement(seq, replace.start, replace.end, shadowed))

    def _end_point(self, seq: int, by: int) -> int:
        position = self.position(seq)
        if position is None:
            raise ReplaceRangeError(
                f"the replacement at seq {by} names {seq}, which is not on the surface", seq=by
            )
        return position

    def _check_tool_rewrite(self, event: EventLike, shadowed: tuple[int, ...]) -> None:
        if event.type != "tool/result":
            return
        first = shadowed[0]
        before = self.event(first)
        if len(shadowed) > 1 or before is None or before.type != "tool/result":
            raise ToolRewriteError(
                f"the tool result at seq {self.next_seq} replaces {len(shadowed)} node(s) from "
                f"{first} on; it may replace exactly one tool result",
                seq=self.next_seq,
            )
        if not json_equal(_without_content(before.data), _without_content(event.data)):
            raise ToolRewriteError(
                f"the tool result at seq {self.next_seq} changes more of {first} than the "
                "content of its block",
                seq=self.next_seq,
            )

    def _check_head(self, event: EventLike, first: int, last: int) -> None:
        if first != 0:
            return
        head = self.event(self._range(0, 0)[0])
        if head is None or head.type != "system/message":
            return
        if event.type != "system/message" or last != 0:
            raise SystemHeadError(
                f"the leading system message (seq {head.seq}) can only be replaced by one system "
                f"message, not by {event.type!r} over {last + 1} node(s)",
                seq=self.next_seq,
            )

    # Applying.

    def apply(self, event: EventLike, plan: Plan) -> None:
        """Make a planned event part of the history."""
        if isinstance(plan, Append):
            self._append(event)
        elif isinstance(plan, Hide):
            self._hide(event, plan)
        elif isinstance(plan, Project):
            self._messages.update(plan.updates)
            self._used[event.type] = plan.projection
            self._changed += 1
        self.next_seq += 1

    def append_run(self, events: Sequence[EventLike], seqs: Sequence[int]) -> None:
        """Make plain appends with these ascending seqs part of the history; `next_seq` stays."""
        nodes = self._added if self._nodes is None else self._nodes
        if self._positions is not None:
            self._positions.update(
                zip(seqs, range(len(nodes), len(nodes) + len(seqs)), strict=True)
            )
        nodes.extend(seqs)
        self._events.extend(events)

    def _append(self, event: EventLike) -> None:
        if self._positions is not None:
            self.append_run((event,), (self.next_seq,))
            return
        (self._added if self._nodes is None else self._nodes).append(self.next_seq)
        self._events.append(event)

    def _hide(self, event: EventLike, plan: Hide) -> None:
        nodes = self._own()
        nodes[plan.first : plan.last + 1] = [self.next_seq]
        if self._positions is not None:
            if plan.first == plan.last:
                del self._positions[plan.replacement.shadowed[0]]
                self._positions[self.next_seq] = plan.first
            else:
                self._positions = None
        self._events.append(event)
        self._replaced += 1
        self._changed += 1

    def surface(self) -> Surface:
        """Return the surface reached; the fold must not be used after it."""
        start = self._start
        own = self._nodes
        return Surface(
            events=start.events.extended(self._events),
            nodes=start.nodes.extended(self._added) if own is None else Growing.adopt(own),
            messages=self.messages if self._messages else _NO_MESSAGES,
            replace_generation=self._replaced,
            content_generation=self._changed,
            used=MappingProxyType(self._used) if self._used else start.used,
            base_seq=self.base_seq,
            next_seq=self.next_seq,
        )

    # The list of nodes, copied only when a replacement needs it.

    def _own(self) -> list[int]:
        if self._nodes is None:
            self._nodes = [*self._start.nodes, *self._added]
        return self._nodes

    def _range(self, first: int, last: int) -> Sequence[int]:
        return self._own()[first : last + 1]

    def position(self, seq: int) -> int | None:
        """Return where a node stands on the surface, None if it is not on it."""
        if self._positions is None:
            self._positions = {node: place for place, node in enumerate(self._own())}
        return self._positions.get(seq)


class _Nodes(Sequence[int]):
    """The nodes of a running fold, as interpreters read them."""

    def __init__(self, fold: SurfaceFold) -> None:
        self._fold = fold

    def __len__(self) -> int:
        return len(self._fold._own())

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        return self._fold._own()[index]

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._fold._own()))

    def __contains__(self, seq: object) -> bool:
        number = natural(seq)
        return number is not None and self._fold.position(number) is not None


def _without_content(data: Json) -> Json:
    """Return tool/result data with the content of its block taken out, so that the rest compares."""
    message = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict):
        return data
    content = message.get("content")
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return data
    block = {key: value for key, value in content[0].items() if key != "content"}
    return {**data, "message": {**message, "content": [block]}}
