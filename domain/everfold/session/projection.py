"""Message projections: the pure policies that plugins own (group F), and the checks of their answers.

A projection judges a candidate event against the history before it and says which messages it
changes. It is replayed for restore, fork and audit, so it reads nothing but what it is given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from everfold.session.derive import derive_event_message, message_of
from everfold.session.errors import LosslessError, ProjectionRejectedError
from everfold.session.events import EventLike
from everfold.session.frozen import Json, freeze, json_equal
from everfold.session.lossless import encode
from everfold.session.payload import check_message


class History(Protocol):
    """What precedes the event that a projection interprets (R91)."""

    @property
    def nodes(self) -> Sequence[int]:
        """The seqs of the current nodes, in surface order."""
        ...

    @property
    def base_seq(self) -> int:
        """The seq of the first event of this history; 0 unless it is a window."""
        ...

    @property
    def messages(self) -> Mapping[int, Json]:
        """The messages projected so far, by seq; read them with `message`."""
        ...

    def event(self, seq: int) -> EventLike | None:
        """Return the message-producing event with this seq, on the surface or hidden, else None."""
        ...


def message_at(history: History, seq: int) -> Json | None:
    """Return the message that the model sees for `seq` now, None if that event gives none."""
    event = history.event(seq)
    return None if event is None else derive_event_message(event, history.messages)


@dataclass(frozen=True, slots=True, eq=False)
class MessageProjection:
    """One event type and its interpreter; compared by identity (R113).

    Attributes:
        type: the event type that it owns.
        project: gives the changed messages by seq; refuses by raising. Both arguments and the
            result are immutable; message id, role and source stay as they are (R94).
        plugin: the owner, named in refusals.
        version: raised when the same events would be projected differently; a snapshot made by
            another version is not used.
    """

    type: str
    project: Callable[[EventLike, History], Mapping[int, Json]]
    plugin: str = "unnamed"
    version: int = 1


def run(projection: MessageProjection, event: EventLike, history: History) -> dict[int, Json]:
    """Return the checked and frozen updates that a projection makes for an event.

    Raises:
        ProjectionRejectedError: the answer cannot stand; the message names the plugin (V2).
        Exception: what the projection itself raised, unchanged but for a note that names it (R107).
    """
    try:
        updates = projection.project(event, history)
    except Exception as error:
        error.add_note(_name(projection, event))
        raise
    if not isinstance(updates, Mapping):
        raise _rejected(projection, event, f"answered with {type(updates).__name__}, not a mapping")
    return {
        _checked_key(key, projection, event): _checked(key, message, projection, event, history)
        for key, message in updates.items()
    }


def _checked_key(key: object, projection: MessageProjection, event: EventLike) -> int:
    if type(key) is not int:
        raise _rejected(projection, event, f"answered for {key!r}, which is no seq")
    return key


def _checked(
    seq: int, message: Json, projection: MessageProjection, event: EventLike, history: History
) -> Json:
    target = history.event(seq)
    before = None if target is None else history.messages.get(seq, message_of(target))
    if before is None:
        raise _rejected(projection, event, f"answered for seq {seq}, which holds no message")
    fault = check_message(message)
    # A detached fold may hold a message that no door would let in (R23); it cannot get worse.
    if fault is not None and not (isinstance(message, dict) and check_message(before)):
        raise _rejected(projection, event, f"made an invalid message for seq {seq}: {fault}")
    for name in ("id", "role", "source"):
        if not json_equal(message.get(name), before.get(name)):
            raise _rejected(projection, event, f"changed the {name} of the message at seq {seq}")
    try:
        encode(message, f"the message for seq {seq}")
    except LosslessError as error:
        raise _rejected(projection, event, f"made an invalid message: {error}") from error
    return freeze(message)


def _rejected(
    projection: MessageProjection, event: EventLike, reason: str
) -> ProjectionRejectedError:
    return ProjectionRejectedError(f"{_name(projection, event)} {reason}", seq=event.seq)


def _name(projection: MessageProjection, event: EventLike) -> str:
    return f"the projection {projection.type!r} of plugin {projection.plugin!r} (seq {event.seq})"
