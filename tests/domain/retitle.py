"""A small projection that is not shipped: it gives the message of a seq another text."""

from collections.abc import Callable, Mapping

from everfold.session.errors import ProjectionRejectedError
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.projection import History, MessageProjection, message_at

TYPE = "note/retitle"


def retitle(event: EventLike, history: History) -> Mapping[int, Json]:
    """Give the message at `data.seq` the text `data.text`; refuse the text `reject`."""
    data = event.data if isinstance(event.data, dict) else {}
    seq, title = data.get("seq"), data.get("text")
    if type(seq) is not int or not isinstance(title, str):
        raise ProjectionRejectedError(f"{event.data!r} names no seq and text", seq=event.seq)
    if title == "reject":
        raise ProjectionRejectedError("the event asks to be rejected", seq=event.seq)
    message = message_at(history, seq)
    if message is None:
        raise ProjectionRejectedError(f"{seq} gives no message", seq=event.seq)
    content = [{"type": "text", "text": title}] if title else []
    return {seq: {**message, "content": content}}


def retitling() -> MessageProjection:
    """Return a definition of its own, equal to no other."""
    return MessageProjection(TYPE, retitle, plugin="titles")


def answering(answer: Callable[[History], object], plugin: str = "liar") -> MessageProjection:
    """Return a projection of `note/retitle` that answers with whatever it is told to."""

    def project(_event: EventLike, history: History) -> Mapping[int, Json]:
        return answer(history)  # type: ignore[return-value]  # wrong answers are what is tested

    return MessageProjection(TYPE, project, plugin=plugin)
