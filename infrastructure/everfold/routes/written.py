"""The wire form of a conversation's settled turns: written once, kept as bytes.

A request adds what is new at the end. Turns with pictures are written anew for each request, since
what stands for a picture is no function of the turn alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from everfold.routes.parts import AnswerPart, ImagePart, Turn
from everfold.routes.wire import items_json

Items = list[dict[str, Any]]
ShowImage = Callable[[ImagePart], dict[str, Any]]
"""Gives the object that stands in a request for a picture."""

BLOCK_BYTES = 512 * 1024
"""Bytes are kept in blocks of at least so many; only the last block is copied when it grows."""


class Form(Protocol):
    """How a route writes turns: the same at every request.

    Attributes:
        lifts_prompt: whether a system prompt that opens the conversation stands outside the list.
    """

    @property
    def lifts_prompt(self) -> bool: ...

    def closes(self, turn: Turn) -> bool:
        """Tell whether nothing that follows `turn` changes how the turns up to it are written."""
        ...

    def write(self, turns: Sequence[Turn], show: ShowImage, *, is_first: bool) -> Items:
        """Return the items of turns that follow a closing one, or begin the list (`is_first`)."""
        ...


@dataclass(frozen=True, slots=True)
class Gap:
    """Turns with pictures, whose place in the list is known."""

    turns: Sequence[Turn]
    is_first: bool


Part = bytes | Gap


@dataclass
class Written:
    """The list as far as it is settled; grows at its end.

    Attributes:
        turn_count: how many turns it holds.
        size: how many bytes are kept.
    """

    form: Form
    turn_count: int = 0
    size: int = 0
    _parts: list[Part] = field(default_factory=list)
    _last: bytes = b""

    @property
    def is_empty(self) -> bool:
        """Whether no item is written yet."""
        return not (self._parts or self._last)

    def parts(self) -> list[Part]:
        """Return what is kept, in order."""
        return [*self._parts, self._last] if self._last else [*self._parts]

    def extend(self, turns: Sequence[Turn]) -> None:
        """Write the next turns, up to the last one that closes."""
        fresh: Items = []
        for chunk in closed(turns, self.form):
            self.turn_count += len(chunk)
            is_first = self.is_empty and not fresh
            if holds_image(chunk):
                self._add(fresh)
                fresh = []
                self._end_block()
                self._parts.append(Gap(chunk, is_first))
            else:
                fresh.extend(self.form.write(chunk, no_image, is_first=is_first))
        self._add(fresh)

    def _add(self, items: Items) -> None:
        added = items_json(items, is_first=self.is_empty)
        self.size += len(added)
        self._last += added
        if len(self._last) >= BLOCK_BYTES:
            self._end_block()

    def _end_block(self) -> None:
        if self._last:
            self._parts.append(self._last)
            self._last = b""


def closed(turns: Sequence[Turn], form: Form) -> Iterator[Sequence[Turn]]:
    """Yield turns in the smallest runs that end with a closing one; those after the last are in none."""
    start = 0
    for place, turn in enumerate(turns, start=1):
        if form.closes(turn):
            yield turns[start:place]
            start = place


def holds_image(turns: Iterable[Turn]) -> bool:
    """Tell whether any turn holds a picture, in itself or in an answer."""
    return any(_is_image(part) for turn in turns for part in turn.parts)


def _is_image(part: object) -> bool:
    if isinstance(part, AnswerPart):
        return any(isinstance(inner, ImagePart) for inner in part.parts)
    return isinstance(part, ImagePart)


def no_image(image: ImagePart) -> dict[str, Any]:
    """Stand for `ShowImage` where turns hold no picture."""
    raise AssertionError(f"picture {image.at} is among turns without pictures")
