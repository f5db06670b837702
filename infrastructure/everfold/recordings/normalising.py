"""What two runs of the same session differ in, left out or given names (R353).

Left out: `seq` and `time` of events, which their order gives, and the times in streams. In double
braces: the session's id, message ids and other random ids in the order of their appearance, the
prompt, the tools, paths of this machine, and the chance in the pause before a retry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everfold.recordings.recording import STREAM_TIMES, Recording
from everfold.session.frozen import Json

PROMPT, TOOLS, SESSION, PATH, DELAY = (
    "{{prompt}}",
    "{{tools}}",
    "{{session}}",
    "{{path}}",
    "{{delay}}",
)
_RANDOM = {
    "compactionId": "compaction",
    "retryId": "retry",
    "commandId": "command",
    "sourceCommandId": "command",
}
_RANDOM_LENGTH = 12
_LEFT_OUT = ("seq", "time")


@dataclass(slots=True)
class Normaliser:
    """Gives the same names to the same things in everything that it is shown.

    Attributes:
        paths: texts that are shown as `{{path}}`, wherever they stand.
        secrets: texts that are shown as asterisks.
    """

    session_id: str
    prompt: str = ""
    tools: Sequence[Json] = ()
    paths: Sequence[str] = ()
    secrets: Sequence[str] = ()
    _names: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names[self.session_id] = SESSION

    def events(self, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Json]]:
        """Return the records of a whole log, normalised; ids get their names here."""
        known = list(records)
        for record in known:
            self._learn(record["data"])
        return [self._event(record) for record in known]

    def value(self, value: Json) -> Json:
        """Return any JSON value with names in place of what differs from run to run."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self._member(key, each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(each) for each in value]
        return value

    def _event(self, record: Mapping[str, Any]) -> dict[str, Json]:
        event = {key: value for key, value in record.items() if key not in _LEFT_OUT}
        normal: dict[str, Json] = self.value(event)
        return normal

    def _member(self, key: str, value: Json) -> Json:
        if key == "tools" and value and list(value) == list(self.tools):
            return TOOLS
        if key == "delayMs":
            return DELAY
        if key == "stream" and isinstance(value, list):
            return [self._record(each) for each in value]
        return self.value(value)

    def _record(self, record: Json) -> Json:
        if not isinstance(record, Mapping):
            return record
        return self.value({k: v for k, v in record.items() if k not in STREAM_TIMES})

    def _text(self, text: str) -> str:
        if text in self._names:
            return self._names[text]
        if self.prompt and text == self.prompt:
            return PROMPT
        for id_ in self._parts:
            text = text.replace(id_, self._names[id_])
        return self.plain(text)

    def plain(self, text: str) -> str:
        """Return a text without the paths of this machine and without secrets."""
        for path in sorted(self.paths, key=len, reverse=True):
            text = text.replace(path, PATH)
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def _learn(self, value: Json) -> None:
        """Name the ids in an event's data in the order in which they stand there."""
        if isinstance(value, Mapping):
            if isinstance(value.get("id"), str) and "role" in value:
                self._name("message", value["id"])
            for key, each in value.items():
                if key in _RANDOM and isinstance(each, str):
                    self._name(_RANDOM[key], each)
                    self._name_parts(each)
                elif key != "stream":
                    self._learn(each)
        elif isinstance(value, (list, tuple)):
            for each in value:
                self._learn(each)

    def _name_parts(self, id_: str) -> None:
        """Have an id replaced inside longer texts too: ids of messages are made of them."""
        if len(id_) >= _RANDOM_LENGTH and id_ not in self._parts:
            self._parts.append(id_)

    def _name(self, kind: str, id_: str) -> None:
        if id_ not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[id_] = f"{{{{{kind}-{self._counts[kind]}}}}}"


def without_paths(value: Json, normaliser: Normaliser) -> Json:
    """Return a value that keeps everything but paths and secrets; for what is played again."""
    if isinstance(value, str):
        return normaliser.plain(value)
    if isinstance(value, Mapping):
        return {key: without_paths(each, normaliser) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_paths(each, normaliser) for each in value]
    return value


def filled(recording: Recording) -> list[dict[str, Json]]:
    """Return a recording's events as records of a log: with seqs, prompt and tools in their places."""
    return [
        {**filled_in(event, recording), "seq": seq, "time": 0}
        for seq, event in enumerate(recording.events)
    ]


def filled_in(value: Json, recording: Recording) -> Json:
    """Return a recorded value with the prompt and the tools in their places."""
    if value == PROMPT:
        return recording.prompt
    if value == TOOLS:
        return recording.tools
    if isinstance(value, dict):
        return {key: filled_in(each, recording) for key, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, recording) for each in value]
    return value
