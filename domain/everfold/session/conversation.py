"""The messages that the model sees, as a value that is cheap to hand out (groups E and H)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

from everfold.session.derive import derive_event_message, gives_message
from everfold.session.frozen import Json
from everfold.session.growing import Growing
from everfold.session.surface import Surface

if TYPE_CHECKING:
    from everfold.session.messages import Message


class Conversation(Sequence[Json]):
    """The messages of a surface, in surface order; decoded when they are read.

    A value: later events do not change it. Messages are frozen and shared: an omission leaves
    all other messages the same objects for as long as somebody holds them (R128).

    Attributes:
        seqs: the node of each message.
    """

    __slots__ = ("_surface", "_views", "seqs")

    def __init__(self, surface: Surface, seqs: Growing[int]) -> None:
        self._surface = surface
        self._views: dict[int, Message] = {}
        self.seqs = seqs

    def __len__(self) -> int:
        return len(self.seqs)

    @overload
    def __getitem__(self, index: int) -> Json: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Json]: ...
    def __getitem__(self, index: int | slice) -> Json | Sequence[Json]:
        if isinstance(index, slice):
            return [self._message(seq) for seq in self.seqs[index]]
        return self._message(self.seqs[index])

    def __iter__(self) -> Iterator[Json]:
        self._surface.events.prefetch(self.seqs)
        return map(self._message, self.seqs)

    def items(self) -> Iterator[tuple[int, Json]]:
        """Yield seq and message of each node that gives one."""
        return zip(self.seqs, self, strict=True)

    def typed(self) -> Sequence["Message"]:
        """Return typed views of the messages; each is made when it is first read, and kept."""
        return _Views(self)

    def view(self, index: int) -> "Message":
        """Return the typed view of one message."""
        # Most programs read messages as they are stored, and pydantic takes long to be imported.
        from everfold.session.messages import typed_message

        seq = self.seqs[index]
        view = self._views.get(seq)
        if view is None:
            view = self._views[seq] = typed_message(self._message(seq))
        return view

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Conversation, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # compared by content, like a list

    def __repr__(self) -> str:
        return f"<Conversation of {len(self)} messages>"

    def _message(self, seq: int) -> Json:
        return derive_event_message(self._surface.events.node(seq), self._surface.messages)


class _Views(Sequence["Message"]):
    """The typed views of a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def __len__(self) -> int:
        return len(self._conversation)

    @overload
    def __getitem__(self, index: int) -> "Message": ...
    @overload
    def __getitem__(self, index: slice) -> Sequence["Message"]: ...
    def __getitem__(self, index: int | slice) -> "Message | Sequence[Message]":
        if isinstance(index, slice):
            return [self._conversation.view(each) for each in range(*index.indices(len(self)))]
        return self._conversation.view(index)


class ConversationCache:
    """Derives conversations, looking at each node once while contents stay (R125, R126).

    May be shared by the sessions of several threads that began with the same log; those that went
    different ways each get their own messages. What is known is one value, so nobody waits.
    """

    def __init__(self) -> None:
        self._known = _Known()

    def derive(self, surface: Surface) -> Conversation:
        """Return the conversation of a surface."""
        known = self._known
        if known.is_start_of(surface):
            known = known.extended(surface)
        else:
            known = _Known(surface.content_generation).extended(surface)
        self._known = known
        return Conversation(surface, known.seqs)


@dataclass(frozen=True, slots=True)
class _Known:
    """The nodes that were looked at, and those of them that give a message."""

    generation: int = -1
    nodes: Growing[int] = field(default_factory=Growing[int])
    seqs: Growing[int] = field(default_factory=Growing[int])

    def is_start_of(self, surface: Surface) -> bool:
        return self.generation == surface.content_generation and surface.nodes.continues(self.nodes)

    def extended(self, surface: Surface) -> "_Known":
        fresh = surface.nodes.since(len(self.nodes))
        if not fresh:
            return self
        surface.events.prefetch(fresh)
        seqs = self.seqs.extended(
            [s for s in fresh if gives_message(surface.events.node(s), surface.messages)]
        )
        return _Known(self.generation, surface.nodes, seqs)
