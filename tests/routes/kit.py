"""Messages, pictures and requests for tests of routes."""

import io
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from PIL import Image

from everfold.attachments.ports import AttachmentStore
from everfold.llm.route import LlmRequest

Json = dict[str, Any]
_numbers = count(1)


def text(content: str) -> Json:
    return {"type": "text", "text": content}


def user(*blocks: Json | str) -> Json:
    return _message("user", blocks, {"kind": "user"})


def system(*blocks: Json | str) -> Json:
    return _message("system", blocks, {"kind": "plugin", "plugin": "prompt"})


def assistant(
    *blocks: Json | str, provider: str = "p", model: str = "m", replay_state: Json | None = None
) -> Json:
    source: Json = {"kind": "model", "provider": provider, "model": model}
    if replay_state is not None:
        source["replayState"] = replay_state
    return _message("assistant", blocks, source)


def call(id_: str, name: str = "look", arguments: str = '{"at":1}') -> Json:
    return {"type": "tool-call", "id": id_, "name": name, "arguments": arguments}


def result(id_: str, *blocks: Json | str, is_error: bool = False) -> Json:
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    block: Json = {"type": "tool-result", "toolCallId": id_, "content": content}
    if is_error:
        block["isError"] = True
    return _message("user", [block], {"kind": "tool", "callId": id_})


def picture(
    store: AttachmentStore,
    data: bytes,
    media_type: str | None = None,
    offloaded: bool = False,
    **more: Any,
) -> Json:
    """Return an image block of a picture that is put into the store as it is, past admission."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
            true_type = Image.MIME[image.format or ""]
    except OSError:
        width, height, true_type = 1, 1, "image/png"
    attachment = {
        "attachmentId": store.put(data),
        "mediaType": media_type or true_type,
        "bytes": len(data),
        "width": width,
        "height": height,
        **more,
    }
    block: Json = {"type": "image", "attachment": attachment}
    return {**block, "offloaded": True} if offloaded else block


def offloaded(messages: Sequence[Json], number: int) -> list[Json]:
    """Return messages in which the oldest retained input pictures are omitted, as recovery does it."""
    left = [number]

    def mark(block: Json) -> Json:
        if block["type"] == "tool-result":
            return {**block, "content": [mark(inner) for inner in block["content"]]}
        if block["type"] == "image" and not block.get("offloaded") and left[0] > 0:
            left[0] -= 1
            return {**block, "offloaded": True}
        return block

    return [
        message
        if message["role"] != "user"
        else {**message, "content": [mark(block) for block in message["content"]]}
        for message in messages
    ]


def request(
    *messages: Json,
    model: str = "m",
    provider: str = "p",
    tools: Sequence[Json] = (),
    session_id: str = "session-1",
    **config: Any,
) -> LlmRequest:
    header: Json = {"config": {"provider": provider, "model": model, **config}}
    if tools:
        header["tools"] = list(tools)
    return LlmRequest(header, list(messages), session_id)


LOOK = {
    "name": "look",
    "description": "Look somewhere.",
    "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}},
}


def _message(role: str, blocks: Sequence[Json | str], source: Mapping[str, Any]) -> Json:
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    return {"id": f"msg-{next(_numbers)}", "role": role, "content": content, "source": source}
