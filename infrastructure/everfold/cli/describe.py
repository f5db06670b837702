"""Describing events, messages and times in words; what it returns is made visible by `output`."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from everfold.audit.requests import failure_of
from everfold.llm.images import is_omitted
from everfold.session.derive import message_of
from everfold.session.events import EventLike
from everfold.session.frozen import Json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time_ms: int) -> str:
    """Return a time as UTC text, `2026-11-30 05:56:54Z`; as plain milliseconds beyond year 9999."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def size(count: Json) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    if not isinstance(count, (int, float)) or isinstance(count, bool):
        return "? B"
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.5 or unit == "GB":
            return f"{value:.1f} {unit}"
    raise AssertionError("the last unit takes all")


def plural(count: int, noun: str) -> str:
    """Return `1 event`, `2 events`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def message_lines(message: Json) -> Iterator[str]:
    """Yield the lines of a message's content, without its role."""
    content = message.get("content") if isinstance(message, Mapping) else None
    yield from _content_lines(content, "")


def _content_lines(content: Json, indent: str) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        yield from (indent + line for line in _block_lines(block))


def _block_lines(block: Json) -> Iterator[str]:
    if not isinstance(block, Mapping):
        yield f"[{block!r}]"
        return
    kind = block.get("type")
    if kind == "text":
        yield from str(block.get("text", "")).split("\n")
    elif kind == "reasoning":
        yield from (f"(reasoning) {line}" for line in str(block.get("text", "")).split("\n"))
    elif kind in ("image", "file"):
        yield f"[{attachment_text(block)}]"
    elif kind == "tool-call":
        yield f"[calls {block.get('name')} {block.get('id')}: {block.get('arguments')}]"
    elif kind == "tool-result":
        failed = " failed" if block.get("isError") is True else ""
        yield f"[result of {block.get('toolCallId')}{failed}]"
        yield from _content_lines(block.get("content"), "  ")
    else:
        yield f"[{kind} block]"


def attachment_text(block: Mapping[str, Json]) -> str:
    """Return what an image or file block refers to, and whether it is omitted."""
    kind = block.get("type")
    attachment = block.get("attachment")
    reference = attachment if isinstance(attachment, Mapping) else {}
    parts = [str(reference[name]) for name in ("name", "mediaType") if name in reference]
    if "width" in reference:
        parts.append(f"{reference.get('width')}x{reference.get('height')}")
    if "bytes" in reference:
        parts.append(size(reference["bytes"]))
    parts.append(str(reference.get("attachmentId", "?"))[:19])
    state = " omitted" if kind == "image" and is_omitted(block) else ""
    return f"{kind}{state}: {', '.join(parts)}"


def event_text(event: EventLike) -> str:
    """Return one line about what an event says; empty if its type says it all."""
    message = message_of(event)
    if message is not None:
        return " ".join(line.strip() for line in message_lines(message))
    data = event.data
    if not isinstance(data, Mapping):
        return ""
    if event.type == "assistant/attempt":
        failure = failure_of(event) or {}
        return f"failed: {failure.get('code', 'no reason given')} {failure.get('message', '')}"
    return ", ".join(_facts(data))


def _facts(data: Mapping[str, Json]) -> Iterator[str]:
    for name, value in data.items():
        if isinstance(value, (str, int, float)):
            yield f"{name} {value}"
        elif isinstance(value, Mapping) and isinstance(value.get("kind"), str):
            yield f"{name} {value['kind']}"
        elif name == "targets" and isinstance(value, list):
            yield f"targets {', '.join(map(_target, value))}"


def _target(target: Json) -> str:
    if not isinstance(target, Mapping):
        return "?"
    indexes = target.get("imageIndexes")
    listed = "+".join(map(str, indexes)) if isinstance(indexes, list) else "?"
    return f"image {listed} of seq {target.get('seq')}"
