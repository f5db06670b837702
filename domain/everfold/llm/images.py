"""Image occurrences in messages: how they are counted, and how some are marked omitted (group O)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

Block = Any
"""A content block: a JSON object with a `type`, or any JSON value that a log happens to hold."""


def images(content: Sequence[Block]) -> Iterator[Mapping[str, Any]]:
    """Yield the image blocks of a message's content, depth first in content order (R201, R202).

    Omitted ones are yielded too: the index of an occurrence is its place in this order (R203).
    Only tool-result blocks are entered.
    """
    for block in content:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "image":
            yield block
        elif block.get("type") == "tool-result" and isinstance(block.get("content"), list):
            yield from images(block["content"])


def is_omitted(image: Mapping[str, Any]) -> bool:
    """Tell whether an image block is marked omitted; `offloaded: false` counts as retained (R216)."""
    return image.get("offloaded") is True


def stored_bytes(image: Mapping[str, Any]) -> int:
    """Return the size of the stored image that a block refers to; 0 if the block does not say.

    The log takes blocks as they come (R28); one that refers to nothing costs a request nothing.
    """
    attachment = image.get("attachment")
    size = attachment.get("bytes") if isinstance(attachment, dict) else None
    return size if type(size) is int and size > 0 else 0


def retained(content: Sequence[Block]) -> list[int]:
    """Return the indexes of the occurrences that are not omitted."""
    return [index for index, image in enumerate(images(content)) if not is_omitted(image)]


def retained_lengths(
    contents: Iterable[Sequence[Block]], length_of: Callable[[Mapping[str, Any]], int]
) -> list[int]:
    """Return the raw bytes of each retained image of a request, oldest first (R239, R248).

    Images that a model made count too, though no omission can remove them (R247).

    Args:
        contents: the content of each message, in surface order.
        length_of: gives the bytes of the version of an image block that the route sends.
    """
    return [
        length_of(image)
        for content in contents
        for image in images(content)
        if not is_omitted(image)
    ]


def marked(content: Sequence[Block], indexes: Collection[int]) -> list[Block]:
    """Return content whose image occurrences at `indexes` are marked omitted.

    Blocks without a selected image are the same objects as before (R219).
    """
    return _Marker(indexes).mark(content)


class _Marker:
    """Walks content in traversal order and marks the selected occurrences."""

    def __init__(self, indexes: Collection[int]) -> None:
        self._indexes = frozenset(indexes)
        self._next = 0

    def mark(self, content: Sequence[Block]) -> list[Block]:
        return [self._block(block) for block in content]

    def _block(self, block: Block) -> Block:
        if not isinstance(block, dict):
            return block
        if block.get("type") == "image":
            self._next += 1
            return {**block, "offloaded": True} if self._next - 1 in self._indexes else block
        if block.get("type") == "tool-result" and isinstance(block.get("content"), list):
            return self._result(block)
        return block

    def _result(self, block: dict[str, Any]) -> Block:
        inner = self.mark(block["content"])
        if all(new is old for new, old in zip(inner, block["content"], strict=True)):
            return block
        return {**block, "content": inner}
