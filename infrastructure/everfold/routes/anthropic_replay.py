"""Anthropic's thinking blocks: kept with their proofs, and sent back unchanged or not at all (M1).

The text of a block is in the message; its signature is in the replay state. A digest beside them
tells whether both are whole: a provider refuses a request for ever if one letter is missing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from everfold.routes.parts import ThoughtPart, Turn

Json = dict[str, Any]

FORMAT = "anthropic-messages/1"
HIDDEN = "[Reasoning that the provider does not show.]"
"""Stands in the message for a block without readable text."""


def thinking_entry(text: str, signature: str) -> Json | None:
    """Return what is kept of a complete thinking block; None if nothing proves it."""
    if not signature:
        return None
    hidden = {} if text else {"thinking": ""}
    digest = _digest("thinking", text, signature)
    return {"type": "thinking", **hidden, "signature": signature, "digest": digest}


def redacted_entry(data: str) -> Json | None:
    """Return what is kept of a complete block of encrypted thinking; None if it is empty."""
    if not data:
        return None
    return {"type": "redacted_thinking", "data": data, "digest": _digest("redacted", "", data)}


def replay_state(entries: Sequence[Json | None]) -> Json | None:
    """Return the state that goes with an answer, one entry for each of its blocks."""
    if not any(entries):
        return None
    return {"response": {"format": FORMAT}, "blocks": list(entries)}


def thinking_blocks(turn: Turn) -> dict[int, Json]:
    """Return the wire form of each thinking block of a turn that is whole, by its place among the parts."""
    entries = _entries(turn.replay_state)
    found: dict[int, Json] = {}
    for place, (part, index) in enumerate(zip(turn.parts, turn.block_indexes, strict=False)):
        if isinstance(part, ThoughtPart) and index < len(entries):
            block = _block(part.text, entries[index])
            if block is not None:
                found[place] = block
    return found


def _entries(state: object) -> Sequence[object]:
    if not isinstance(state, Mapping):
        return ()
    response, entries = state.get("response"), state.get("blocks")
    is_ours = isinstance(response, Mapping) and response.get("format") == FORMAT
    return entries if is_ours and isinstance(entries, list) else ()


def _block(text: str, entry: object) -> Json | None:
    if not isinstance(entry, Mapping):
        return None
    kind, digest = entry.get("type"), entry.get("digest")
    if kind == "redacted_thinking":
        data = entry.get("data")
        is_whole = isinstance(data, str) and digest == _digest("redacted", "", data)
        return {"type": kind, "data": data} if is_whole else None
    thinking, signature = entry.get("thinking", text), entry.get("signature")
    if kind != "thinking" or not isinstance(thinking, str) or not isinstance(signature, str):
        return None
    if digest != _digest("thinking", thinking, signature):
        return None
    return {"type": kind, "thinking": thinking, "signature": signature}


def _digest(kind: str, text: str, proof: str) -> str:
    whole = "\0".join((kind, text, proof)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:16]
