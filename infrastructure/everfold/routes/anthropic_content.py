"""Gives turns the form of Anthropic's messages: user and assistant in alternation, no block empty."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from everfold.routes.anthropic_replay import thinking_blocks
from everfold.routes.pairing import arguments_of
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, Part, TextPart, Turn
from everfold.routes.preparing import Built, Inline
from everfold.routes.projection import LATER_PROMPT

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


class MessageWriter:
    """Writes the messages of one request, turn by turn (A10, M2, M6).

    Args:
        inline: the pictures, by `ImagePart.at`.
        built: takes note of the blocks that hold them.
        replays_thinking: whether own thinking blocks are sent back.
    """

    def __init__(self, inline: Mapping[int, Inline], built: Built, replays_thinking: bool) -> None:
        self._inline, self._built = inline, built
        self._replays_thinking = replays_thinking

    def system(self, turn: Turn) -> list[Json]:
        """Return the blocks of the system prompt."""
        return [_text(part.text) for part in turn.parts if isinstance(part, TextPart)]

    def write(self, turn: Turn) -> list[Json]:
        """Return the message of one turn; nobody may change it, later requests share it."""
        role = "assistant" if turn.role == "assistant" else "user"
        return [{"role": role, "content": list(self._content(turn))}]

    def _content(self, turn: Turn) -> Iterator[Json]:
        thinking = thinking_blocks(turn) if self._replays_thinking else {}
        if turn.role == "system":
            yield _text(LATER_PROMPT)
        for place, part in enumerate(turn.parts):
            if place in thinking:
                yield thinking[place]
            else:
                yield from self._blocks(part)

    def _blocks(self, part: Part) -> Iterator[Json]:
        """Yield the block of a part; a thought without its proof has none (M1)."""
        match part:
            case TextPart(text):
                yield _text(text)
            case ImagePart():
                yield self._image(part)
            case CallPart():
                yield _call(part)
            case AnswerPart():
                yield self._answer(part)

    def _image(self, part: ImagePart) -> Json:
        """Return a picture under the true type of its bytes (A7)."""
        inline = self._inline[part.at]
        media_type = inline.picture.version.media_type
        source = {"type": "base64", "media_type": media_type, "data": inline.text}
        return self._built.holding(part, {"type": "image", "source": source})

    def _answer(self, answer: AnswerPart) -> Json:
        """Return a tool result; one with a picture cannot be marked as failed, so text says it."""
        block: Json = {"type": "tool_result", "tool_use_id": answer.id}
        content = [inner for part in answer.parts for inner in self._blocks(part)]
        if answer.is_error and any(isinstance(part, ImagePart) for part in answer.parts):
            content = [_text(FAILED), *content]
        elif answer.is_error:
            block["is_error"] = True
        return {**block, "content": content}


def alternating(written: Iterable[Json]) -> list[Json]:
    """Return messages, at least one, with neighbours merged; they begin and end with a user's."""
    messages: list[Json] = []
    for message in written:
        last = messages[-1]["role"] if messages else None
        if message["role"] == "user" and last == "user":
            content = [*messages[-1]["content"], *message["content"]]
            messages[-1] = {"role": "user", "content": content}
            continue
        if message["role"] == "assistant" and last != "user":
            messages.append(_user(CONTINUE if messages else OPENING))
        messages.append(message)
    if not messages or messages[-1]["role"] == "assistant":
        messages.append(_user(CONTINUE if messages else OPENING))
    return messages


def mark_for_cache(tools: list[Json], system: list[Json], messages: list[Json]) -> None:
    """Put cache breakpoints on the last block of tools, system prompt and the latest two user messages.

    The next request of a conversation has the later of these messages as its earlier one, so what
    this request writes into the cache is found then, however many blocks come in between. Four are
    the most that the provider takes. No block is empty, none is thinking. Messages are replaced, not
    changed.
    """
    for blocks in (tools, system):
        if blocks:
            blocks[-1] = _marked(blocks[-1])
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for at in users[-2:]:
        *others, last = messages[at]["content"]
        messages[at] = {"role": "user", "content": [*others, _marked(last)]}


def _marked(block: Json) -> Json:
    if block.get("type") == "image":
        # Blocks of pictures are known by identity and are never shared between requests.
        block["cache_control"] = _BREAKPOINT
        return block
    return {**block, "cache_control": _BREAKPOINT}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _user(text: str) -> Json:
    return {"role": "user", "content": [_text(text)]}


def _call(call: CallPart) -> Json:
    """Return a tool use; a name that another provider allowed is made valid."""
    name = _NOT_IN_NAMES.sub("_", call.name)[:_MAX_NAME] or "unknown"
    return {"type": "tool_use", "id": call.id, "name": name, "input": arguments_of(call)}
