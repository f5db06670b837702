"""Every way in which the next event of a log can be wrong, one fault each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.domain.kit import APPEND, assistant, nested, system, tool_result, user
from tests.domain.model import Json, Record, Writer, images


@dataclass(frozen=True)
class Fault:
    """An event that may not be the next.

    Attributes:
        name: what is wrong.
        code: the refusal it must get.
        is_appendable: whether a live append can be asked for it.
    """

    name: str
    code: str
    record: Record
    is_appendable: bool = True


Maker = Callable[[Writer], Fault | None]
FAULTS: list[Maker] = []
_LOST = {"header": {"config": {"provider": "p"}}, "reason": "initial"}


def _fault(name: str, code: str, type_: str, data: Json, **more: Json) -> None:
    def make(writer: Writer) -> Fault:
        return Fault(name, code, _record(writer, type_, data, **more))

    FAULTS.append(make)


def _record(writer: Writer, type_: str, data: Json, **more: Json) -> Record:
    return {"type": type_, "seq": writer.next_seq, "time": 7, "data": data, **more}


def _maker(make: Maker) -> Maker:
    FAULTS.append(make)
    return make


_fault("not a number", "json", "todo/write", {"a": [float("nan")]})
_fault("-0", "json", "todo/write", -0.0)
_fault("2^53", "json", "todo/write", [2**53])
_fault("a float beyond 2^53", "json", "todo/write", [1e300])
_fault("lone surrogate", "json", "user/message", user("u", "\ud800"), **APPEND)
_fault("too deep", "json", "todo/write", nested(201))
_fault("unknown type", "unknown-event", "x/unknown", {})
_fault("message without place", "surface-op", "user/message", user())
_fault("null as place", "surface-op", "user/message", user(), surfaceOp=None)
_fault("place on a log-only type", "surface-op", "turn/start", {"turn": 1}, surfaceOp="append")
_fault("sources on a log-only type", "surface-op", "turn/end", {}, sourceEventSeqs=[0])
_fault("place on a projection", "surface-op", "image/offload", {}, surfaceOp="append")
_fault("no sources", "source-refs", "user/message", user(), **APPEND, sourceEventSeqs=[])
_fault("null sources", "source-refs", "user/message", user(), **APPEND, sourceEventSeqs=None)
_fault("a number as sources", "source-refs", "user/message", user(), **APPEND, sourceEventSeqs=5)
_fault("later sources", "source-refs", "user/message", user(), **APPEND, sourceEventSeqs=[10**6])
_fault("true as a source", "source-refs", "user/message", user(), **APPEND, sourceEventSeqs=[True])
_fault(
    "assistant sources",
    "source-refs",
    "assistant/message",
    assistant(),
    **APPEND,
    sourceEventSeqs=[0],
)
_fault("header with prompt", "payload", "request/header", {"header": {"system": None}})
_fault("header without model", "payload", "request/header", _LOST)
_fault("error without isError", "payload", "tool/result", tool_result(error=None), **APPEND)
_fault("no id", "message-shape", "user/message", {**user(), "id": ""}, **APPEND)
_fault("wrong role", "message-shape", "user/message", {**user(), "role": "system"}, **APPEND)
_fault("no source kind", "message-shape", "user/message", {**user(), "source": {}}, **APPEND)
_fault("true as a step", "settlement", "assistant/message", assistant(step=True), **APPEND)
_fault("targets are no list", "offload-payload", "image/offload", {"targets": {}})
_fault(
    "target that is no node",
    "offload-target",
    "image/offload",
    {"targets": [{"seq": 10**6, "imageIndexes": [0]}]},
)


@_maker
def skipped_seq(writer: Writer) -> Fault:
    record = {**_record(writer, "todo/write", {}), "seq": writer.next_seq + 1}
    return Fault("a seq is left out", "sequence", record, is_appendable=False)


@_maker
def extra_field(writer: Writer) -> Fault:
    record = _record(writer, "todo/write", {}, extra=1)
    return Fault("unknown field", "envelope", record, is_appendable=False)


@_maker
def replaced_later(writer: Writer) -> Fault:
    seq = writer.next_seq
    record = _record(writer, "user/message", user(), **_replace(seq, seq, [0] if seq else [seq]))
    return Fault("replaces itself", "replace-range", record)


@_maker
def shadowed_end_point(writer: Writer) -> Fault | None:
    hidden = [seq for seq in writer.shown if seq not in writer.nodes]
    if not hidden:
        return None
    record = _record(writer, "user/message", user(), **_replace(hidden[0], hidden[0], [hidden[0]]))
    return Fault("end point is hidden", "replace-range", record)


@_maker
def reversed_range(writer: Writer) -> Fault | None:
    if len(writer.nodes) < 2:
        return None
    first, last = writer.nodes[-2:]
    record = _record(writer, "user/message", user(), **_replace(last, first, [first, last]))
    return Fault("range is reversed", "replace-range", record)


@_maker
def uncited_node(writer: Writer) -> Fault | None:
    if len(writer.nodes) < 2:
        return None
    first, last = writer.nodes[-2:]
    record = _record(writer, "user/message", user(), **_replace(first, last, [last]))
    return Fault("a hidden node is not cited", "replace-coverage", record)


@_maker
def changed_result(writer: Writer) -> Fault | None:
    if not writer.tool_results:
        return None
    seq = writer.tool_results[-1]
    data = {**writer.records[seq]["data"], "turn": 99}
    record = _record(writer, "tool/result", data, **_replace(seq, seq, [seq]))
    return Fault("a rewrite changes the turn", "tool-rewrite", record)


@_maker
def result_over_user(writer: Writer) -> Fault | None:
    others = [seq for seq in writer.nodes if writer.type(seq) != "tool/result"]
    if not others:
        return None
    record = _record(
        writer, "tool/result", tool_result(), **_replace(others[-1], others[-1], others)
    )
    return Fault("a tool result replaces another type", "tool-rewrite", record)


@_maker
def lost_prompt(writer: Writer) -> Fault | None:
    if not writer.is_head_system:
        return None
    head = writer.nodes[0]
    record = _record(writer, "user/message", user(), **_replace(head, head, [head]))
    return Fault("the prompt is replaced by a user message", "system-head", record)


@_maker
def prompt_over_more(writer: Writer) -> Fault | None:
    if not writer.is_head_system or len(writer.nodes) < 2:
        return None
    first, last = writer.nodes[:2]
    record = _record(writer, "system/message", system(), **_replace(first, last, [first, last]))
    return Fault("a prompt replaces more than the prompt", "system-head", record)


@_maker
def omitted_already(writer: Writer) -> Fault | None:
    gone = [
        (seq, index)
        for seq in writer.nodes
        if writer.type(seq) in ("user/message", "tool/result")
        for index in _omitted(writer, seq)
    ]
    if not gone:
        return None
    return Fault("an image is omitted already", "offload-index", _omission(writer, *gone[0]))


@_maker
def missing_image(writer: Writer) -> Fault | None:
    if not writer.with_images:
        return None
    return Fault("no such image", "offload-index", _omission(writer, writer.with_images[0], 10**6))


@_maker
def omission_twice(writer: Writer) -> Fault | None:
    if not writer.with_images:
        return None
    seq = writer.with_images[0]
    target = {"seq": seq, "imageIndexes": [writer.retained(seq)[0]]}
    record = _record(writer, "image/offload", {"targets": [target, target]})
    return Fault("a target is named twice", "offload-target", record)


@_maker
def model_image(writer: Writer) -> Fault | None:
    others = [seq for seq in writer.nodes if writer.type(seq) == "assistant/message"]
    if not others:
        return None
    return Fault("a model's image is no input", "offload-target", _omission(writer, others[0], 0))


def _omitted(writer: Writer, seq: int) -> list[int]:
    left = set(writer.retained(seq))
    return [i for i in range(len(images(writer.shown[seq]["content"]))) if i not in left]


def _omission(writer: Writer, seq: int, index: int) -> Record:
    return _record(writer, "image/offload", {"targets": [{"seq": seq, "imageIndexes": [index]}]})


def _replace(start: int, end: int, sources: list[int]) -> dict[str, Any]:
    marker = {"op": "replace", "startSeq": start, "endSeq": end}
    return {"surfaceOp": marker, "sourceEventSeqs": sources}
