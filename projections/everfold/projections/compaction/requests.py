"""What the model is asked for a summary: the conversation's own prefix, in as many passes as fit (R285, D13)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everfold.llm.route import LlmRequest
from everfold.projections.compaction.errors import CompactionSummaryError
from everfold.projections.compaction.pairing import whole_pairs, without_tools
from everfold.projections.compaction.wishes import PLUGIN, framed
from everfold.projections.token_meter.prices import (
    OVERHEAD,
    message_price,
    text_price,
    tools_price,
    utf16_length,
)

Message = Mapping[str, Any]

SMALLEST_INPUT = 64
"""Tokens of conversation that a pass must have room for."""

_LEFT_OUT = "\n[… the middle was left out, since it is too long to be summarised …]\n"

_SHARE_OF_PROMPT = 2
"""Head prompt and tools are left out of a pass when they take more than one part in so many."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that are not divided: a call and its results, or one message.

    Attributes:
        price: as the route prices them.
        start, end: places in the selection: of its first node, and after its last.
        names_pictures: whether pictures in it are only named.
        ends: if it is one text, how many characters of its beginning and of its end are kept.
    """

    messages: tuple[Message, ...]
    price: int
    start: int = 0
    end: int = 0
    names_pictures: bool = False
    ends: int | None = None


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """What a summary is made of.

    Attributes:
        head: the derived system prompt, none if there is none.
        units: the conversation that is summarised, in order.
        config: what the requests are sent with.
        tools: the conversation's tools, so that its prefix stays the one that caches know.
        instruction: what the model is asked to do.
        limit: what one request may cost; None for any.
        access_path: as the conversation's own requests have it.
    """

    session_id: str
    compaction_id: str
    head: tuple[Message, ...]
    units: tuple[Unit, ...]
    config: Mapping[str, Any]
    tools: Sequence[Any]
    instruction: str
    limit: int | None
    access_path: str | None = None

    def fitted(self) -> "SummaryInput":
        """Return this input without prompt and tools if these take up too much of the limit."""
        if self.limit is None or self._overhead() * _SHARE_OF_PROMPT <= self.limit:
            return self
        bare = replace(self, tools=())
        if bare._overhead() * _SHARE_OF_PROMPT <= self.limit:
            return bare
        return replace(bare, head=())

    def room(self, previous: Sequence[Any]) -> int | None:
        """Return what of the conversation fits into a pass, None for all of it.

        Args:
            previous: content of the summary of the passes before; empty for the first.

        Raises:
            CompactionSummaryError: hardly anything fits.
        """
        if self.limit is None:
            return None
        carried = message_price(_carried(self, previous)) if previous else 0
        room = self.limit - self._overhead() - carried
        if room < SMALLEST_INPUT:
            raise CompactionSummaryError(
                f"the model that summarises takes {self.limit} tokens of input, which leaves "
                f"{max(room, 0)} for the conversation; choose one with a larger context window"
            )
        return room

    def cost(self, unit: Unit) -> int:
        """Return what a unit costs in a pass: more where calls and results are spelled out."""
        if self.tools:
            return unit.price
        spelled = without_tools(unit.messages)
        return (
            unit.price + sum(map(message_price, spelled)) - sum(map(message_price, unit.messages))
        )

    def request(self, units: Sequence[Unit], previous: Sequence[Any]) -> LlmRequest:
        """Return the request of one pass."""
        messages = [message for unit in units for message in unit.messages]
        messages = whole_pairs(messages) if self.tools else without_tools(messages)
        carried = [_carried(self, previous)] if previous else []
        asked = _message(self, "request", [_text(self.instruction)])
        header: dict[str, Any] = {"config": dict(self.config)}
        if self.tools:
            header["tools"] = list(self.tools)
        shown = (*self.head, *carried, *messages, asked)
        return LlmRequest(header, shown, self.session_id, self.access_path)

    def _overhead(self) -> int:
        head = sum(map(message_price, self.head))
        asked = text_price(self.instruction) + 2 * OVERHEAD
        return head + asked + tools_price(list(self.tools))


def passes(made_of: SummaryInput, units: Sequence[Unit], previous: Sequence[Any]) -> Iterator[Unit]:
    """Yield the units of the next pass: as many of the first ones as fit, at least one.

    A unit that fits no pass by itself is given as text that is shortened in the middle.

    Raises:
        CompactionSummaryError: hardly anything fits.
    """
    room = made_of.room(previous)
    taken = 0
    for unit in units:
        cost = made_of.cost(unit)
        if room is not None and taken + cost > room:
            if taken == 0:
                yield shortened(unit, room)
            return
        taken += cost
        yield unit


def shortened(unit: Unit, room: int) -> Unit:
    """Return a unit as one text that costs at most `room` tokens; images in it are named only."""
    # Four tokens for the block, four for the message, and the rest at two units a token for safety.
    ends = _ends(_spelled(unit.messages), max(room - 2 * OVERHEAD, 1) * 2)
    message = as_text(unit.messages, ends)
    return replace(unit, messages=(message,), price=message_price(message), ends=ends)


def as_text(messages: Sequence[Message], ends: int) -> Message:
    """Return messages as one text, with its middle left out; images in it are named only.

    Args:
        ends: how many characters of the beginning and of the end are kept.
    """
    text = _spelled(messages)
    if ends < len(text):
        text = text[:ends] + _LEFT_OUT + (text[-ends:] if ends else "")
    return {
        "id": messages[0].get("id", "shortened"),
        "role": "user",
        "content": [_text(text)],
        "source": {"kind": "plugin", "plugin": PLUGIN},
    }


def with_pictures_named(message: Message) -> Message:
    """Return a message whose pictures are only named; it is the same object if it holds none."""
    blocks = message["content"]
    if not any(_is_picture(block) for block in blocks):
        return message
    named = [_text(_name_of(block)) if _is_picture(block) else block for block in blocks]
    return {**message, "content": named}


def _is_picture(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "image"


def _name_of(block: Any) -> str:
    """Return what stands for a block that has no text."""
    kind = block.get("type") if isinstance(block, dict) else None
    attachment = block.get("attachment") if isinstance(block, dict) else None
    name = attachment.get("name") if isinstance(attachment, dict) else None
    return f"[{kind or 'block'}{f' {name}' if isinstance(name, str) else ''}]"


def _ends(text: str, kept: int) -> int:
    """Return how much of each end of a text is kept so that it has at most `kept` UTF-16 units."""
    if utf16_length(text) <= kept:
        return len(text)
    # Characters may take two units each, so half as many of them surely fit.
    return max((kept - len(_LEFT_OUT)) // 4, 0)


def _spelled(messages: Sequence[Message]) -> str:
    return "\n".join(line for message in without_tools(messages) for line in _lines(message))


def _lines(message: Message) -> Iterator[str]:
    yield f"[{message.get('role')}:]"
    for block in message["content"]:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("text", "reasoning") and isinstance(block.get("text"), str):
            yield block["text"]
        else:
            yield _name_of(block)


def _carried(made_of: SummaryInput, previous: Sequence[Any]) -> Message:
    return _message(made_of, "carried", framed(previous))


def _message(made_of: SummaryInput, what: str, content: list[Any]) -> Message:
    return {
        "id": f"compaction-{what}-{made_of.compaction_id}",
        "role": "user",
        "content": content,
        "source": {
            "kind": "plugin",
            "plugin": PLUGIN,
            "compactionId": made_of.compaction_id,
        },
    }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
