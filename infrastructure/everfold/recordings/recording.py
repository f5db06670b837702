"""What a recording holds: what people did, what models were asked and answered, and what was logged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from everfold.llm.failure import LlmFailure
from everfold.llm.stream import Record
from everfold.recordings.sharing import SharingWriter
from everfold.session.frozen import Json

VERSION = 2
"""Recordings of version 1 hold every request whole, and the events of an older loop."""

Deed = Literal["ask", "cancel", "crash", "resume", "compact", "append"]
Ending = Literal["finish", "failure", "closed"]

STREAM_TIMES = ("time", "time0", "dt")
"""The fields of a stream record that say when; they are kept beside, and left out of events."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a person, or the fate of a process, did to the session.

    Attributes:
        deed: `ask` with content; `cancel` and `crash` happen while the ask before them runs;
            `resume` takes the session over; `compact` with a focus; `append` an event of a user.
        content: the blocks of an ask.
        type, data: of an appended event.
    """

    deed: Deed
    content: tuple[Json, ...] = ()
    focus: str = ""
    type: str = ""
    data: Json = None

    def to_json(self) -> dict[str, Json]:
        """Return the act as a line of the file."""
        fields: dict[str, Json] = {"type": "act", "deed": self.deed}
        if self.deed == "ask":
            fields["content"] = list(self.content)
        if self.deed == "compact" and self.focus:
            fields["focus"] = self.focus
        if self.deed == "append":
            fields["event"] = {"type": self.type, "data": self.data}
        return fields

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "Act":
        """Return the act that a line holds."""
        event = line.get("event", {})
        return cls(
            line["deed"],
            tuple(line.get("content", ())),
            line.get("focus", ""),
            event.get("type", ""),
            event.get("data"),
        )


@dataclass(slots=True)
class Exchange:
    """One request and what came back.

    Attributes:
        seq: the last event of the log when it was prepared.
        header, messages: the request as the log gave it.
        body: its wire form, exactly as it was sent; None if it was refused before.
        refused: why it was not sent.
        stream: the answer, packed; times count from its beginning, in milliseconds.
        ended: by the provider's finish, by a failure, or closed by who asked.
        failure: of the stream.
    """

    provider: str
    seq: int
    header: Json
    messages: Sequence[Json]
    body: Json = None
    image_count: int = 0
    image_bytes: int = 0
    refused: LlmFailure | None = None
    stream: list[Record] | None = None
    ended: Ending = "closed"
    failure: LlmFailure | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the exchange as a line of the file; what there is not is left out."""
        fields: dict[str, Json] = {
            "type": "exchange",
            "provider": self.provider,
            "seq": self.seq,
            "request": {"header": self.header, "messages": list(self.messages)},
        }
        more: dict[str, Json] = {
            "body": self.body,
            "images": {"count": self.image_count, "bytes": self.image_bytes},
            "refused": None if self.refused is None else self.refused.to_json(),
            "stream": self.stream,
            "ended": self.ended if self.stream is not None else None,
            "failure": None if self.failure is None else self.failure.to_json(),
        }
        if not self.image_count:
            del more["images"]
        return {**fields, **{name: value for name, value in more.items() if value is not None}}

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "Exchange":
        """Return the exchange that a line holds."""
        images = line.get("images", {})
        return cls(
            provider=line["provider"],
            seq=line["seq"],
            header=line["request"]["header"],
            messages=line["request"]["messages"],
            body=line.get("body"),
            image_count=images.get("count", 0),
            image_bytes=images.get("bytes", 0),
            refused=_failure(line.get("refused")),
            stream=line.get("stream"),
            ended=line.get("ended", "closed"),
            failure=_failure(line.get("failure")),
        )


def _failure(data: object) -> LlmFailure | None:
    return LlmFailure.from_json(data) if isinstance(data, Mapping) else None


@dataclass(slots=True)
class Recording:
    """A recorded session.

    Attributes:
        about: one sentence.
        prompt, tools: what `{{prompt}}` and `{{tools}}` stand for.
        settings: of the agent: `model`, `retry`, `limits`, as `everfold.agent.settings` has them.
        plugins: those that acted, with their settings.
        capabilities: what models took, by provider.
        prices: tokens of image blocks, by `price_key`.
        events: the log, normalised.
    """

    about: str = ""
    prompt: str = ""
    tools: list[Json] = field(default_factory=list)
    settings: dict[str, Json] = field(default_factory=dict)
    plugins: dict[str, dict[str, Json]] = field(default_factory=dict)
    capabilities: dict[str, Json] = field(default_factory=dict)
    prices: dict[str, int] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    events: list[dict[str, Json]] = field(default_factory=list)

    def lines(self) -> Iterator[dict[str, Json]]:
        """Yield the lines of its file: the head, the acts, the exchanges, the events."""
        yield {
            "type": "recording",
            "version": VERSION,
            "about": self.about,
            "prompt": self.prompt,
            "tools": self.tools,
            "settings": self.settings,
            "plugins": self.plugins,
            "capabilities": self.capabilities,
            "prices": self.prices,
        }
        yield from (act.to_json() for act in self.acts)
        writer = SharingWriter()
        yield from (writer.shortened(exchange.to_json()) for exchange in self.exchanges)
        yield from ({"type": "event", "event": event} for event in self.events)


def price_key(image: Mapping[str, Any]) -> str:
    """Return the key of an image block's price."""
    attachment = image.get("attachment", {})
    state = "omitted" if image.get("offloaded") is True else "shown"
    return f"{attachment.get('attachmentId')} {state}"
