"""From version 2 to 3: the system prompt becomes a message, and some names change (R349, R350).

An empty system message is put after the first `step/start`; each request header whose prompt is
another one than the last is preceded by a replacement of that message. Where messages stand before
the first step, the empty one goes before them: models were always shown the prompt first (K2).
"""

import hashlib
import json
from collections.abc import Iterator

from everfold.interchange.upgrading.checking import TYPES
from everfold.interchange.upgrading.numbered import Numbered, Record
from everfold.interchange.upgrading.references import Renumbering, renumbered
from everfold.session.errors import PayloadError, SessionError
from everfold.session.frozen import Json
from everfold.session.vocabulary import MESSAGE_TYPES

HEADER = "request/header"
_STEP = "step/start"
_NAMES = {
    "tool/code-dispatch": "tool/ptc-dispatch",
    "tool/code-dispatch-start": "tool/ptc-dispatch-start",
}
_PRESETS = {"code": "ptc"}
_PLUGIN = "system-prompt"


def header_from_2(header: Record) -> Record:
    """Return the header of version 3."""
    return _with_preset({**header, "version": 3})


def records_from_2(records: Iterator[Numbered], session_id: Json) -> Iterator[Numbered]:
    """Yield the records of version 3.

    Args:
        session_id: the file's, for the ids of the messages that are made up.

    Raises:
        ImportRefusedError: a prompt has no step to stand in, or no known form, or an event cites
            none that is earlier.
    """
    return _Prompting(session_id).run(records)


class _Prompting:
    """One run over a log. From a message or a prompt on, events are held until the first step begins."""

    def __init__(self, session_id: Json) -> None:
        self._session_id = session_id
        self._numbers = Renumbering()
        self._held: list[Numbered] = []
        self._step: Record = {}
        self._head: int | None = None
        self._prompt: Json = []

    def run(self, records: Iterator[Numbered]) -> Iterator[Numbered]:
        for each in records:
            if self._head is None and each.type == _STEP:
                yield from self._first_step(each)
            elif self._head is None and (self._held or _needs_head(each)):
                self._held.append(each)
            else:
                yield from self._emit(each)
        for each in self._held:
            yield from self._emit(each)

    def _first_step(self, each: Numbered) -> Iterator[Numbered]:
        self._remember(each)
        held, self._held = self._held, []
        if held:
            yield self._system(held[0], [])
            for event in held:
                yield from self._emit(event)
            yield from self._emit(each)
        else:
            yield from self._emit(each)
            yield self._system(each, [])

    def _remember(self, each: Numbered) -> None:
        data = each.data if isinstance(each.data, dict) else {}
        self._step = {name: data[name] for name in ("turn", "step") if name in data}

    def _emit(self, each: Numbered) -> Iterator[Numbered]:
        if each.type == _STEP:
            self._remember(each)
        elif each.type == HEADER and isinstance(each.data, dict):
            yield from self._prompt_change(each)
        # An unknown event is opaque (R46): nobody knows what in it is a seq.
        is_known = each.type in TYPES[2]
        record = _renamed(self._numbered(each)) if is_known else dict(each.record)
        record["seq"] = self._numbers.give(each.record["seq"])
        yield Numbered(each.line, each.seq, record)

    def _numbered(self, each: Numbered) -> Record:
        try:
            return renumbered(each.record, self._numbers)
        except SessionError as error:
            raise each.refusal(error) from error

    def _prompt_change(self, each: Numbered) -> Iterator[Numbered]:
        prompt = _prompt_of(each)
        if prompt == self._prompt:
            return
        if self._head is None:
            raise each.refusal(PayloadError("the header has a prompt, and the log has no step"))
        yield self._system(each, prompt)

    def _system(self, place: Numbered, content: Json) -> Numbered:
        """Return a system message: the empty one at the head, or the one that takes its place."""
        seq, head = self._numbers.give(), self._head
        self._head, self._prompt = seq, content
        message = {
            "id": self._id(seq),
            "role": "system",
            "content": content,
            "source": {"kind": "plugin", "plugin": _PLUGIN},
        }
        record = {
            "type": "system/message",
            "seq": seq,
            "time": place.record["time"],
            "data": {**self._step, "message": message},
            "surfaceOp": "append",
        }
        if head is not None:
            record["surfaceOp"] = {"op": "replace", "startSeq": head, "endSeq": head}
            record["sourceEventSeqs"] = [head]
        return Numbered(place.line, place.seq, record)

    def _id(self, seq: int) -> str:
        facts = json.dumps(["everfold", self._session_id, seq, "system/message"])
        return f"v2-to-v3-system-{hashlib.sha256(facts.encode()).hexdigest()}"


def _needs_head(each: Numbered) -> bool:
    is_prompting = each.type == HEADER and isinstance(each.data, dict) and bool(_prompt_of(each))
    return each.type in MESSAGE_TYPES or is_prompting


def _prompt_of(each: Numbered) -> Json:
    """Return the content blocks of a header's prompt."""
    header = each.data.get("header")
    system = header.get("system") if isinstance(header, dict) else None
    if isinstance(system, str):
        return [{"type": "text", "text": system}] if system else []
    if system is None or isinstance(system, list):
        return system or []
    raise each.refusal(PayloadError("the header's system is neither text nor a list of blocks"))


def _renamed(record: Record) -> Record:
    type_, data = record["type"], record["data"]
    record["type"] = _NAMES.get(type_, type_)
    operation = record.get("surfaceOp")
    if isinstance(operation, dict):
        ends = {"startSeq": operation["start"], "endSeq": operation["end"]}
        record["surfaceOp"] = {"op": operation["op"], **ends}
    if type_ == "assistant/message":
        record.pop("sourceEventSeqs", None)
    elif type_ == HEADER and isinstance(data, dict) and isinstance(data.get("header"), dict):
        record["data"] = {**data, "header": _request_header(data["header"])}
    elif type_ == "agent-preset/selected" and isinstance(data, dict):
        record["data"] = _with_preset(data)
    return record


def _request_header(header: Record) -> Record:
    empty = {name for name in ("tools", "adapterDefaults") if name in header and not header[name]}
    return {name: value for name, value in header.items() if name not in {"system", *empty}}


def _with_preset(fields: Record) -> Record:
    preset = fields.get("agentPreset")
    if not isinstance(preset, str):
        return fields
    return {**fields, "agentPreset": _PRESETS.get(preset, preset)}
