"""Tool calls and their results: where a conversation may be cut, and what text stands for a lone half."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from everfold.projections.compaction.wishes import PLUGIN

Message = Mapping[str, Any]
Block = Mapping[str, Any]


def cuts(messages: Sequence[Message | None], open_places: Collection[int] = ()) -> list[bool]:
    """Tell for each place, 0 to `len(messages)`, whether no call and its result stand on two sides.

    Args:
        messages: what each node gives; None for nodes that give nothing.
        open_places: where the results of calls may still come, so that no cut after such a call
            is clean (D4).
    """
    crossed = [0] * (len(messages) + 2)
    open_calls: dict[str, int] = {}
    for place, message in enumerate(messages):
        for block in _blocks(message):
            if _is_call(block):
                open_calls[str(block.get("id"))] = place
            elif _is_result(block):
                _cross(crossed, open_calls.pop(str(block.get("toolCallId")), None), place)
    for place in open_calls.values():
        if place in open_places:
            _cross(crossed, place, len(messages))
    clean, depth = [], 0
    for change in crossed[: len(messages) + 1]:
        depth += change
        clean.append(depth == 0)
    return clean


def _cross(crossed: list[int], call: int | None, result: int) -> None:
    """Note that every cut after the call and up to the result divides them."""
    if call is not None:
        crossed[call + 1] += 1
        crossed[result + 1] -= 1


def whole_pairs(messages: Sequence[Message]) -> list[Message]:
    """Return messages in which a call without a result, and a result without a call, are text.

    A result belongs to a call of the nearest assistant message before it, and to one only.
    Messages without such a half are the same objects.
    """
    paired = _paired(messages)
    return [
        _as_text(message, [b for b in _blocks(message) if _is_half(b) and id(b) not in paired])
        for message in messages
    ]


def without_tools(messages: Sequence[Message]) -> list[Message]:
    """Return messages in which all calls and results are text, for requests without tools (D11)."""
    return [_as_text(message, [b for b in _blocks(message) if _is_half(b)]) for message in messages]


def _paired(messages: Sequence[Message]) -> set[int]:
    """Return the identities of the blocks that have their other half."""
    paired: set[int] = set()
    calls: dict[str, Block] = {}
    for message in messages:
        if message.get("role") == "assistant":
            calls = {str(b.get("id")): b for b in _blocks(message) if _is_call(b)}
        for block in _blocks(message):
            call = calls.pop(str(block.get("toolCallId")), None) if _is_result(block) else None
            if call is not None:
                paired |= {id(call), id(block)}
    return paired


def _as_text(message: Message, halves: Sequence[Block]) -> Message:
    if not halves:
        return message
    chosen = {id(block) for block in halves}
    content: list[Any] = []
    for block in message["content"]:
        content.extend(_spelled(block) if id(block) in chosen else (block,))
    source = message.get("source")
    if isinstance(source, dict) and source.get("kind") == "tool":
        source = {"kind": "plugin", "plugin": PLUGIN}
    return {**message, "content": content, "source": source}


def _spelled(block: Block) -> Iterator[Any]:
    if _is_call(block):
        yield _text(f"[Called tool {block.get('name')} with {block.get('arguments') or '{}'}]")
        return
    failed = ", which failed" if block.get("isError") is True else ""
    yield _text(f"[Result of tool call {block.get('toolCallId')}{failed}:]")
    content = block.get("content")
    yield from content if isinstance(content, list) else ()


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _blocks(message: Message | None) -> Iterator[Block]:
    content = message.get("content") if message is not None else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block


def _is_call(block: Block) -> bool:
    return block.get("type") == "tool-call"


def _is_result(block: Block) -> bool:
    return block.get("type") == "tool-result"


def _is_half(block: Block) -> bool:
    return _is_call(block) or _is_result(block)
