"""Takes a request apart: chat completions, Responses and Anthropic messages."""

import re
from typing import Any

from tests.providers.seen import Seen, SeenCall, SeenImage, SeenText, SeenThought

_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)

Json = Any


def read_chat(body: Json) -> Seen:
    """Return what a chat completions request holds."""
    seen = Seen("chat", model=body.get("model", ""), tools=body.get("tools", ()))
    for at, message in enumerate(body.get("messages", [])):
        role, path = message["role"], f"messages[{at}]"
        seen.roles.append(role)
        _chat_content(seen, message.get("content"), role, f"{path}.content")
        for n, call in enumerate(message.get("tool_calls", ())):
            place = f"{path}.tool_calls[{n}].id"
            seen.calls.append(SeenCall("call", call["id"], at, place))
        if role == "tool":
            place = f"{path}.tool_call_id"
            seen.calls.append(SeenCall("answer", message["tool_call_id"], at, place))
    return seen


def _chat_content(seen: Seen, content: Json, role: str, path: str) -> None:
    if isinstance(content, str):
        seen.texts.append(SeenText(content, path, role))
        return
    for n, part in enumerate(content or ()):
        if part["type"] == "text":
            seen.texts.append(SeenText(part["text"], f"{path}[{n}].text", role))
        elif part["type"] == "image_url":
            place = f"{path}[{n}].image_url"
            seen.images.append(_from_url(part["image_url"]["url"], place, role))


def read_responses(body: Json) -> Seen:
    """Return what a Responses request holds; each item counts as a message."""
    seen = Seen("responses", model=body.get("model", ""), tools=body.get("tools", ()))
    if "instructions" in body:
        seen.texts.append(SeenText(body["instructions"], "instructions", "system"))
    for at, item in enumerate(body.get("input", [])):
        _item(seen, item, at)
    return seen


def _item(seen: Seen, item: Json, at: int) -> None:
    kind, path = item.get("type", "message"), f"input[{at}]"
    if kind == "message":
        seen.roles.append(item["role"])
        _response_content(seen, item["content"], item["role"], f"{path}.content")
    elif kind == "function_call":
        seen.calls.append(SeenCall("call", item["call_id"], at, f"{path}.call_id"))
    elif kind == "function_call_output":
        seen.calls.append(SeenCall("answer", item["call_id"], at, f"{path}.call_id"))
        _response_content(seen, item["output"], "tool", f"{path}.output")
    elif kind == "reasoning":
        text = "".join(part["text"] for part in item.get("summary", ()))
        seen.thoughts.append(SeenThought(text, item.get("encrypted_content") or "", path))


def _response_content(seen: Seen, content: Json, role: str, path: str) -> None:
    if isinstance(content, str):
        seen.texts.append(SeenText(content, path, role))
        return
    for n, part in enumerate(content):
        place = f"{path}[{n}]"
        if part["type"] in ("input_text", "output_text"):
            seen.texts.append(SeenText(part["text"], f"{place}.text", role))
        elif part["type"] == "input_image" and part.get("file_id"):
            seen.images.append(SeenImage(f"{place}.file_id", "", "", part["file_id"], role))
        elif part["type"] == "input_image":
            seen.images.append(_from_url(part["image_url"], f"{place}.image_url", role))


def read_messages(body: Json) -> Seen:
    """Return what an Anthropic messages request holds."""
    seen = Seen("messages", model=body.get("model", ""), tools=body.get("tools", ()))
    _blocks(seen, body.get("system", ()), "system", 0, "system")
    for at, message in enumerate(body.get("messages", [])):
        seen.roles.append(message["role"])
        if not message["content"]:
            seen.empty_messages.append(f"messages.{at}")
        _blocks(seen, message["content"], message["role"], at, f"messages.{at}.content")
    return seen


def _blocks(seen: Seen, content: Json, role: str, at: int, path: str) -> None:
    if isinstance(content, str):
        seen.texts.append(SeenText(content, path, role))
        return
    for n, block in enumerate(content):
        _block(seen, block, role, at, f"{path}.{n}")


def _block(seen: Seen, block: Json, role: str, at: int, path: str) -> None:
    kind = block["type"]
    if kind == "text":
        seen.texts.append(SeenText(block["text"], path, role))
    elif kind == "image":
        seen.images.append(_anthropic_image(block["source"], path, role))
    elif kind == "tool_use":
        seen.calls.append(SeenCall("call", block["id"], at, f"{path}.tool_use.id"))
    elif kind == "tool_result":
        seen.calls.append(
            SeenCall("answer", block["tool_use_id"], at, f"{path}.tool_result.tool_use_id")
        )
        _blocks(seen, block.get("content", ()), "tool", at, f"{path}.tool_result.content")
    elif kind == "thinking":
        seen.thoughts.append(SeenThought(block["thinking"], block.get("signature", ""), path))
    elif kind == "redacted_thinking":
        seen.thoughts.append(SeenThought("", block["data"], path))


def _anthropic_image(source: Json, path: str, role: str) -> SeenImage:
    if source["type"] == "file":
        return SeenImage(f"{path}.image.source.file", "", "", source["file_id"], role)
    place = f"{path}.image.source.base64"
    return SeenImage(place, source["media_type"], source["data"], None, role)


def _from_url(url: str, path: str, role: str) -> SeenImage:
    match = _DATA_URL.fullmatch(url)
    media_type, encoded = match.groups() if match else ("", "")
    return SeenImage(path, media_type, encoded, None, role)
