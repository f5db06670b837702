"""Deriving the message of an event: what the log stored, or what a projection made of it (group E)."""

from collections.abc import Mapping

from everfold.session.events import EventLike, Recorded
from everfold.session.frozen import Json
from everfold.session.vocabulary import MESSAGE_TYPES

_EMPTY = b'"content":[]'
_MAY_BE_EMPTY = frozenset(("system/message", "assistant/message"))


def stored_message(event: EventLike) -> Json | None:
    """Return the message that an event stored, None for events that hold none (R81, R85).

    A system or assistant message with empty content is no message for the model (R82); use
    `message_of` where such a node is meant too.
    """
    if event.type == "user/message":
        return event.data
    message = message_of(event)
    if message is not None and event.type in _MAY_BE_EMPTY and message.get("content") == []:
        return None
    return message


def message_of(event: EventLike) -> Json | None:
    """Return the message object of a message-producing event, empty or not; None for others."""
    if event.type not in MESSAGE_TYPES:
        return None
    if isinstance(event, Recorded) and event.type != "user/message":
        return event.message
    data = event.data
    if event.type == "user/message":
        return data if isinstance(data, Mapping) else None
    message = data.get("message") if isinstance(data, Mapping) else None
    return message if isinstance(message, Mapping) else None


def derive_event_message(event: EventLike, projected: Mapping[int, Json]) -> Json | None:
    """Return what the model sees of an event: its projected message if there is one (R80, R86)."""
    message = projected.get(event.seq)
    return message if message is not None else stored_message(event)


def gives_message(event: EventLike, projected: Mapping[int, Json]) -> bool:
    """Tell whether a node gives the model a message; stored bytes are decoded only in doubt."""
    if event.seq in projected:
        return True
    if isinstance(event, Recorded) and _EMPTY not in event.state:
        return True
    return stored_message(event) is not None
