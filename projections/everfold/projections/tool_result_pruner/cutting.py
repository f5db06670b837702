"""Cutting the middle out of a tool result's text (R291 to R293)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Block = Any


@dataclass(frozen=True, slots=True)
class PruneLimits:
    """When a tool result is shortened, and what stays of it; all in Unicode code points.

    Attributes:
        threshold: text up to this length stays whole.
        head: how much of the beginning stays.
        tail: how much of the end stays.

    Raises:
        ValueError: head, marker and tail together are longer than the threshold (R291).
    """

    threshold: int = 8192
    head: int = 4096
    tail: int = 1024

    def __post_init__(self) -> None:
        if min(self.threshold, self.head, self.tail) < 0:
            raise ValueError("threshold, head and tail are lengths and not below 0")
        longest = self.head + self.tail + len(marker_text(10**12))
        if longest > self.threshold:
            raise ValueError(
                f"head {self.head}, tail {self.tail} and the marker take up to {longest} "
                f"characters, more than the threshold of {self.threshold}"
            )


def marker_text(removed: int) -> str:
    """Return what stands where text was cut out."""
    return f"\n[… {removed} characters of this tool result were removed to save space …]\n"


def pruned(content: Sequence[Block], limits: PruneLimits) -> list[Block] | None:
    """Return the content with the middle of all its text cut out, None if it is short enough.

    The text blocks are cut as if they were one text; the marker stands where the cut begins.
    Other blocks keep their place, nested tool results are not entered (R296), and text blocks
    that the cut empties are gone.
    """
    total = sum(len(block["text"]) for block in content if _is_text(block))
    if total <= limits.threshold:
        return None
    start, end = limits.head, total - limits.tail
    result: list[Block] = []
    at = 0
    for block in content:
        if not _is_text(block):
            result.append(block)
            continue
        text, began = block["text"], at
        at += len(text)
        result.extend(_kept(block, text, start - began, end - began, marker_text(end - start)))
    return result


def _kept(block: Block, text: str, start: int, end: int, marker: str) -> Iterator[Block]:
    """Yield what is left of one text block when `start` to `end`, counted from its own beginning, go."""
    size = len(text)
    if end <= 0 or start >= size:
        # The cut begins exactly at the end of this block: the next one carries the marker.
        yield block
        return
    head, tail = text[: max(start, 0)], text[max(end, 0) :] if end < size else ""
    said = f"{head}{marker}{tail}" if start >= 0 else tail
    if said:
        yield {**block, "text": said}


def _is_text(block: Block) -> bool:
    return (
        isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    )
