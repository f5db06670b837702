"""Projects the next request of a session from where the last one ended.

A conversation grows at its end, and the messages that a session hands out stay the same objects
until a decision changes one. So the turns of all but the latest exchange, and the bytes of their
wire form, are kept from request to request; the result is the same as that of `project`.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import is_
from threading import Lock

from everfold.llm.route import LlmRequest
from everfold.routes.limits import RouteLimits
from everfold.routes.parts import ImagePart, Turn
from everfold.routes.projection import Message, Projection
from everfold.routes.wire import items_json
from everfold.routes.written import (
    Form,
    Gap,
    Items,
    Part,
    ShowImage,
    Written,
    closed,
    holds_image,
    no_image,
)
from everfold.session.growing import Growing

SESSIONS = 32
"""How many sessions a route keeps, the latest ones."""

KEPT_BYTES = 64 * 1024 * 1024
"""How many bytes of wire form a route keeps of all of them together.

The turns take about half as much again, and the messages three times as much, which a running loop
holds too; both are let go with the bytes. A session that is not kept is projected whole; what is sent
is the same.
"""

_Key = tuple[str, str, bool, str | None]


@dataclass(frozen=True, slots=True)
class Projected:
    """The turns of a request, its retained pictures, and what is written of them already.

    Attributes:
        settled: turns that no later message can change; more may stand there than are meant.
        settled_count: how many of them are this request's.
        rest: the other turns.
        images: oldest first.
        parts: the written part of the list; it holds the first `written_count` of the settled
            turns after the prompt.
    """

    settled: Sequence[Turn]
    settled_count: int
    rest: Sequence[Turn]
    images: Sequence[ImagePart]
    form: Form
    parts: Sequence[Part]
    written_count: int

    @property
    def turns(self) -> list[Turn]:
        """All turns, in order."""
        return [*self.settled[: self.settled_count], *self.rest]

    @property
    def prompt(self) -> Turn | None:
        """The system prompt that opens the conversation, if it stands outside the list."""
        opening = self.settled[:1] if self.settled_count else self.rest[:1]
        is_prompt = self.form.lifts_prompt and bool(opening) and opening[0].role == "system"
        return opening[0] if is_prompt else None

    @property
    def written(self) -> Sequence[Turn]:
        """The turns that are written already."""
        start = 0 if self.prompt is None else 1
        return self.settled[start : start + self.written_count]

    @property
    def unwritten(self) -> list[Turn]:
        """The turns that are not, which follow those."""
        start = self.written_count + (0 if self.prompt is None else 1)
        if start > self.settled_count:
            return list(self.rest[start - self.settled_count :])
        return [*self.settled[start : self.settled_count], *self.rest]


class Listing:
    """The long list in the body of one request.

    Attributes:
        tail: the items that were not written before this request; routes may change them until the
            list is read.
    """

    def __init__(self, projected: Projected, show: ShowImage) -> None:
        self._projected = projected
        write = projected.form.write
        gaps = [part for part in projected.parts if isinstance(part, Gap)]
        self._gaps = [write(gap.turns, show, is_first=gap.is_first) for gap in gaps]
        self.tail = write(projected.unwritten, show, is_first=self.is_new)

    @property
    def is_new(self) -> bool:
        """Whether the tail is the whole list."""
        return not self._projected.parts

    def pieces(self) -> Iterator[bytes]:
        """Yield the list as JSON, without its brackets."""
        gaps = iter(self._gaps)
        for part in self._projected.parts:
            if isinstance(part, Gap):
                yield items_json(next(gaps), is_first=part.is_first)
            else:
                yield part
        yield items_json(self.tail, is_first=self.is_new)

    def items(self) -> Items:
        """Return the list itself, all of it written anew but for pictures and tail."""
        form, gaps = self._projected.form, iter(self._gaps)
        items: Items = []
        for chunk in closed(self._projected.written, form):
            is_first = not items
            items.extend(
                next(gaps) if holds_image(chunk) else form.write(chunk, no_image, is_first=is_first)
            )
        return [*items, *self.tail]


class _Kept:
    """What is kept of a session's last request."""

    def __init__(self, projection: Projection, limits: RouteLimits, form: Form) -> None:
        self._projection, self._limits = projection, limits
        self._messages: Sequence[Message] = ()
        self._written = Written(form)

    @property
    def size(self) -> int:
        """How many bytes of wire form it holds."""
        return self._written.size

    def is_continued_in(self, messages: Sequence[Message], limits: RouteLimits) -> bool:
        """Tell whether the messages kept are the first of these, object by object."""
        return limits == self._limits and _continues(messages, self._messages)

    def projected(self, messages: Sequence[Message]) -> Projected:
        """Take the messages that are new, and return the request's turns."""
        projection, written = self._projection, self._written
        for message in _since(messages, len(self._messages)):
            projection.add(message)
        self._messages = messages if isinstance(messages, Growing) else tuple(messages)
        settled = projection.settled
        has_prompt = written.form.lifts_prompt and bool(settled) and settled[0].role == "system"
        written.extend(settled[written.turn_count + has_prompt :])
        return Projected(
            settled,
            len(settled),
            projection.rest(),
            [*projection.images],
            written.form,
            written.parts(),
            written.turn_count,
        )


class Projections:
    """Projects requests of one route; keeps the latest sessions. Safe for several threads.

    Args:
        kept_bytes: how many bytes of wire form are kept.
    """

    def __init__(self, provider: str, form: Form, kept_bytes: int = KEPT_BYTES) -> None:
        self._provider, self._form = provider, form
        self._most_bytes = kept_bytes
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._lock = Lock()

    def of(self, request: LlmRequest, limits: RouteLimits) -> Projected:
        """Return the turns of a request.

        Raises:
            LlmError: as `project`.
        """
        model, has_tools = request.config["model"], bool(request.header.get("tools"))
        key = (request.session_id, model, has_tools, request.access_path)
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is not None and not kept.is_continued_in(request.messages, limits):
                self._forget(request.session_id)
                kept = None
            if kept is None:
                kept = _Kept(self._new(request, limits), limits, self._form)
            projected = kept.projected(request.messages)
            self._kept[key] = kept
            self._make_room()
            return projected

    def kept_bytes(self) -> int:
        """Return how many bytes of wire form are kept."""
        with self._lock:
            return self._sum()

    def _forget(self, session_id: str) -> None:
        """Let go of a session whose history was changed, for whichever model it was written."""
        for key in [key for key in self._kept if key[0] == session_id]:
            del self._kept[key]

    def _make_room(self) -> None:
        while len(self._kept) > SESSIONS or self._sum() > self._most_bytes:
            self._kept.popitem(last=False)

    def _sum(self) -> int:
        return sum(kept.size for kept in self._kept.values())

    def _new(self, request: LlmRequest, limits: RouteLimits) -> Projection:
        model, has_tools = request.config["model"], bool(request.header.get("tools"))
        return Projection(self._provider, model, limits, request.access_path, has_tools)


def _continues(messages: Sequence[Message], known: Sequence[Message]) -> bool:
    if isinstance(messages, Growing) and isinstance(known, Growing) and messages.continues(known):
        return True
    return len(messages) >= len(known) and all(map(is_, known, messages))


def _since(messages: Sequence[Message], start: int) -> Sequence[Message]:
    return messages.since(start) if isinstance(messages, Growing) else messages[start:]
