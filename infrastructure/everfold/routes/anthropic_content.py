"""Gives turns the form of Anthropic's messages: user and assistant in alternation, no block empty."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from everfold.routes.anthropic_replay import thinking_blocks
from everfold.routes.pairing import arguments_of
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, Part, TextPart, Turn
from everfold.routes.preparing import Inline
from everfold.routes.projection import LATER_PROMPT
from everfold.routes.written import Items, ShowImage

Json = dict[str, Any]

OPENING = "[The conversation begins here.]"
"""Stands first where no user has spoken."""

CONTINUE = "[Continue.]"
"""Follows words of the model that nobody answered: newer models refuse to be the last to speak.

It stays between them and what the model said then, so that the sent prefix does not change."""

FAILED = "[The call failed:]"
_BREAKPOINT = {"type": "ephemeral"}
_MAX_NAME = 128
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class MessagesForm:
    """A `Form` of messages, turn by turn; neighbours of one role are one (A10, M2, M6).

    What a user says to words of the model goes with what follows it, so an assistant's turn closes.

    Args:
        replays_thinking: whether own thinking blocks are sent back.
    """

    lifts_prompt = True

    def __init__(self, replays_thinking: bool) -> None:
        self._replays_thinking = replays_thinking

    def closes(self, turn: Turn) -> bool:
        """As `Form.closes`."""
        return turn.role == "assistant"

    def write(self, turns: Sequence[Turn], show: ShowImage, *, is_first: bool) -> Items:
        """As `Form.write`; the first message is a user's, and they alternate from there on."""
        messages: Items = []
        for turn in turns:
            content = list(self._content(turn, show))
            last = messages[-1]["role"] if messages else None
            if turn.role != "assistant":
                if last == "user":
                    messages[-1]["content"].extend(content)
                else:
                    messages.append({"role": "user", "content": content})
                continue
            if last != "user":
                messages.append(_filler(is_first=is_first and not messages))
            messages.append({"role": "assistant", "content": content})
        return messages

    def _content(self, turn: Turn, show: ShowImage) -> Iterator[Json]:
        thinking = thinking_blocks(turn) if self._replays_thinking else {}
        if turn.role == "system":
            yield _text(LATER_PROMPT)
        for place, part in enumerate(turn.parts):
            if place in thinking:
                yield thinking[place]
            else:
                yield from _blocks(part, show)


def end_with_user(messages: Items, *, is_first: bool) -> None:
    """Let the list end with a message of a user's.

    Args:
        is_first: whether no messages precede these.
    """
    if not messages or messages[-1]["role"] == "assistant":
        messages.append(_filler(is_first=is_first and not messages))


def mark_for_cache(tools: Items, system: Items, messages: Items) -> None:
    """Put cache breakpoints on the last block of tools, system prompt and the latest two user messages.

    The next request of a conversation has the later of these messages as its earlier one, so what
    this request writes into the cache is found then, however many blocks come in between. Four are
    the most that the provider takes. No block is empty, none is thinking.

    Args:
        messages: the last ones of a request, written for it alone.
    """
    for blocks in (tools, system):
        if blocks:
            blocks[-1] = _marked(blocks[-1])
    users = (message for message in reversed(messages) if message["role"] == "user")
    for message in islice(users, 2):
        message["content"][-1] = _marked(message["content"][-1])


def _marked(block: Json) -> Json:
    if block.get("type") == "image":
        # Blocks of pictures are known by identity.
        block["cache_control"] = _BREAKPOINT
        return block
    return {**block, "cache_control": _BREAKPOINT}


def system_blocks(prompt: Turn) -> Items:
    """Return the blocks of the system prompt."""
    return [_text(part.text) for part in prompt.parts if isinstance(part, TextPart)]


def image_block(inline: Inline) -> Json:
    """Return a picture under the true type of its bytes (A7)."""
    media_type = inline.picture.version.media_type
    source = {"type": "base64", "media_type": media_type, "data": inline.text}
    return {"type": "image", "source": source}


def _blocks(part: Part, show: ShowImage) -> Iterator[Json]:
    """Yield the block of a part; a thought without its proof has none (M1)."""
    match part:
        case TextPart(text):
            yield _text(text)
        case ImagePart():
            yield show(part)
        case CallPart():
            yield _call(part)
        case AnswerPart():
            yield _answer(part, show)


def _answer(answer: AnswerPart, show: ShowImage) -> Json:
    """Return a tool result; one with a picture cannot be marked as failed, so text says it."""
    block: Json = {"type": "tool_result", "tool_use_id": answer.id}
    content = [inner for part in answer.parts for inner in _blocks(part, show)]
    if answer.is_error and any(isinstance(part, ImagePart) for part in answer.parts):
        content = [_text(FAILED), *content]
    elif answer.is_error:
        block["is_error"] = True
    return {**block, "content": content}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _filler(*, is_first: bool) -> Json:
    """Return what a user says where nobody spoke."""
    return {"role": "user", "content": [_text(OPENING if is_first else CONTINUE)]}


def _call(call: CallPart) -> Json:
    """Return a tool use; a name that another provider allowed is made valid."""
    name = _NOT_IN_NAMES.sub("_", call.name)[:_MAX_NAME] or "unknown"
    return {"type": "tool_use", "id": call.id, "name": name, "input": arguments_of(call)}
