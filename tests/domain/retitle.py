"""A small projection that is not shipped: it gives the message of a seq another text."""

from collections.abc import Callable, Mapping

from everfold.session.errors import ProjectionRejectedError
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.projection import History, MessageProjection, message_at

TYPE = "note/retitle"


def retitle(event: EventLike, history: History) -> Mapping[int, Json]:
    """Give the message at `data.seq` the text `data.text`; refuse the text `reject`."""
    if event.data["text"] == "reject":
        raise ProjectionRejectedError("the event asks to be rejected", seq=event.seq)
    message = message_at(history, event.data["seq"])
    if message is None:
        raise ProjectionRejectedError(f"{event.data['seq']} gives no message", seq=event.seq)
    content = [{"type": "text", "text": event.data["text"]}] if event.data["text"] else []
    return {event.data["seq"]: {**message, "content": content}}


def retitling() -> MessageProjection:
    """Return a definition of its own, equal to no other."""
    return MessageProjection(TYPE, retitle, plugin="titles")


def answering(answer: Callable[[History], object], plugin: str = "liar") -> MessageProjection:
    """Return a projection of `note/retitle` that answers with whatever it is told to."""

    def project(_event: EventLike, history: History) -> Mapping[int, Json]:
        return answer(history)  # type: ignore[return-value]  # wrong answers are what is tested

    return MessageProjection(TYPE, project, plugin=plugin)
