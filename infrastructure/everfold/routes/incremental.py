"""Projects the next request of a session from where the last one ended.

A conversation grows at its end, and the messages that a session hands out stay the same objects
until a decision changes one. So the turns of all but the latest exchange, and their wire form, are
kept from request to request; the result is the same as that of `project`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import is_
from threading import Lock
from typing import Any

from everfold.llm.route import LlmRequest
from everfold.routes.limits import RouteLimits
from everfold.routes.parts import AnswerPart, ImagePart, Turn
from everfold.routes.projection import AccessPath, Message, Projection

_SESSIONS = 32
Items = list[dict[str, Any]]
Write = Callable[[Turn], Items]


@dataclass
class Projected:
    """The turns of a request, its retained pictures, and what is known of their wire form.

    Attributes:
        images: oldest first.
        settled_count: how many of the turns no later message can change.
        written: the wire form of settled turns by their place, None for those with pictures.
    """

    turns: list[Turn]
    images: list[ImagePart]
    settled_count: int
    written: dict[int, Items | None]

    def items(self, write: Write, since: int = 0) -> Items:
        """Return the wire form of the turns from `since` on, one after another.

        What holds no picture is written once and shared between requests: nobody may change it.

        Args:
            write: gives the wire form of one turn; the same function of the turn at every request.
        """
        items: Items = []
        for place, turn in enumerate(self.turns[since:], since):
            items.extend(self._written(place, turn, write))
        return items

    def _written(self, place: int, turn: Turn, write: Write) -> Items:
        if place >= self.settled_count:
            return write(turn)
        if place not in self.written:
            self.written[place] = None if _has_image(turn) else write(turn)
        known = self.written[place]
        return write(turn) if known is None else known


@dataclass
class _Kept:
    """What is kept of a session's last request."""

    limits: RouteLimits
    projection: Projection
    messages: list[Message] = field(default_factory=list)
    written: dict[int, Items | None] = field(default_factory=dict)

    def continues_in(self, messages: Sequence[Message], limits: RouteLimits) -> bool:
        """Tell whether the messages kept are the first of these, object by object."""
        return (
            limits == self.limits
            and len(messages) >= len(self.messages)
            and all(map(is_, self.messages, messages))
        )


class Projections:
    """Projects requests of one route; keeps the latest sessions. Safe for several threads."""

    def __init__(self, provider: str, access_path: AccessPath) -> None:
        self._provider, self._access_path = provider, access_path
        self._kept: OrderedDict[tuple[str, str, bool], _Kept] = OrderedDict()
        self._lock = Lock()

    def of(self, request: LlmRequest, limits: RouteLimits) -> Projected:
        """Return the turns of a request.

        Raises:
            LlmError: as `project`.
        """
        model, has_tools = request.config["model"], bool(request.header.get("tools"))
        key = (request.session_id, model, has_tools)
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is None or not kept.continues_in(request.messages, limits):
                kept = _Kept(limits, self._new(model, limits, has_tools))
            projection = kept.projection
            for message in request.messages[len(kept.messages) :]:
                projection.add(message)
                kept.messages.append(message)
            self._kept[key] = kept
            if len(self._kept) > _SESSIONS:
                self._kept.popitem(last=False)
            settled = len(projection.settled)
            return Projected(projection.turns(), [*projection.images], settled, kept.written)

    def _new(self, model: str, limits: RouteLimits, has_tools: bool) -> Projection:
        return Projection(self._provider, model, limits, self._access_path, has_tools)


def _has_image(turn: Turn) -> bool:
    return any(
        isinstance(part, ImagePart) or (isinstance(part, AnswerPart) and _any_image(part.parts))
        for part in turn.parts
    )


def _any_image(parts: Iterable[object]) -> bool:
    return any(isinstance(part, ImagePart) for part in parts)
