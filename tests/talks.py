"""A small session as an agent would leave it: images, a refusal, an omission, a tool, a rewrite."""

from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent, message, replacement
from everfold.session.frozen import Json

IMAGE: Json = {
    "type": "image",
    "attachment": {
        "attachmentId": "sha256:" + "ab" * 32,
        "mediaType": "image/png",
        "bytes": 1407,
        "width": 331,
        "height": 211,
        "name": "quay.png",
    },
}
HEADER: Json = {"config": {"provider": "p", "model": "m"}}
FAILURE: Json = {"message": "too large", "code": "IMAGE_OFFLOAD_REQUIRED", "offloadImages": 1}


def text(words: str) -> Json:
    """Return a text block."""
    return {"type": "text", "text": words}


def user(id_: str, *content: Json) -> AppendEvent:
    """Return the wish for a user message."""
    source = {"kind": "user"}
    data = {"id": id_, "role": "user", "content": list(content), "source": source}
    return message("user/message", data)


def assistant(id_: str, *content: Json, turn: int = 1) -> AppendEvent:
    """Return the wish for an assistant message."""
    source = {"kind": "model", "provider": "p", "model": "m"}
    answer = {"id": id_, "role": "assistant", "content": list(content), "source": source}
    return message("assistant/message", {"turn": turn, "step": 1, "message": answer, "stream": []})


def tool_result(*content: Json) -> Json:
    """Return the data of a tool's answer."""
    block = {"type": "tool-result", "toolCallId": "c-1", "content": list(content)}
    source = {"kind": "tool", "callId": "c-1"}
    answer = {"id": "t-1", "role": "user", "content": [block], "source": source}
    return {"turn": 1, "step": 1, "message": answer}


def attempt() -> AppendEvent:
    """Return the wish for a request that its route refused."""
    finish = {"type": "finish", "reason": {"kind": "error", "failure": FAILURE}}
    stream = [{"type": "chunk", "time": 1, "chunk": finish}]
    return AppendEvent("assistant/attempt", {"turn": 1, "step": 1, "stream": stream})


def talk(sessions: Sessions, session_id: str = "quay") -> str:
    """Store a closed session of 14 events and return its id.

    3 shows the image that 6 omits; 11 takes the place of 10. Requests: 5 fails, 8 and 12 answer.
    """
    sessions.create(session_id)
    where = {"turn": 1, "step": 1}
    call = {"type": "tool-call", "id": "c-1", "name": "look", "arguments": "{}"}
    system = {
        "id": "s-1",
        "role": "system",
        "content": [text("be brief")],
        "source": {"kind": "plugin", "plugin": "prompt-maker"},
    }
    sessions.append_batch(
        session_id,
        (
            AppendEvent("turn/start", {"turn": 1}),
            AppendEvent("step/start", where),
            message("system/message", {**where, "message": system}),
            user("u-1", text("what is this?"), IMAGE),
            AppendEvent("request/header", {"header": HEADER, "reason": "initial"}),
            attempt(),
            AppendEvent("image/offload", {"targets": [{"seq": 3, "imageIndexes": [0]}]}),
            AppendEvent("request/header", {"header": HEADER, "reason": "series"}),
            assistant("a-1", text("let me look"), call),
            AppendEvent("tool/call", {**where, "callId": "c-1", "name": "look", "arguments": "{}"}),
            message("tool/result", tool_result(text("a long story"))),
            replacement("tool/result", tool_result(text("short")), start=10, end=10, sources=[10]),
            assistant("a-2", text("a quay")),
            AppendEvent("turn/end", {"turn": 1, "reason": {"kind": "completed"}}),
        ),
    )
    return session_id
