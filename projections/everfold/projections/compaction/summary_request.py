"""A request for a summary: what its event tells of it, and the request that comes of that and the log.

The rule to keep: what is sent is made here, of the very event that is stored, so that it can be
made again. The texts that stand around and between what the log holds are part of the format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everfold.llm.route import LlmRequest
from everfold.projections.compaction.errors import SummaryRequestError
from everfold.projections.compaction.requests import (
    Message,
    SummaryInput,
    Unit,
    as_text,
    with_pictures_named,
)
from everfold.projections.compaction.selection import SYSTEM
from everfold.session.frozen import Json
from everfold.session.request_context import logged_access_path
from everfold.session.session import Session

_REQUIRED: Mapping[str, type] = {
    "compactionId": str,
    "pass": int,
    "config": dict,
    "withPrompt": bool,
    "withTools": bool,
    "range": dict,
    "instruction": str,
}
_OPTIONAL: Mapping[str, type] = {
    "sourceCommandId": str,
    "picturesNamed": bool,
    "shortened": int,
    "carried": list,
}
_ENDS: Mapping[str, type] = {"start": int, "end": int}


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a `compaction/request` holds: all of a request that the log does not say otherwise.

    Attributes:
        number: which pass of the summary it is, from 1.
        config: what it is sent with.
        with_prompt: whether the prompt at the conversation's head is sent; so for its tools.
        start, end: of the nodes whose messages this pass summarises, by position (R290).
        pictures_named: whether pictures in the model's own messages are only named.
        shortened: if the messages are given as one text, how many characters (Unicode code points)
            of its beginning, and as many of its end, are kept; all of it, if it has no more.
        carried: the blocks of the summary of the passes before.
    """

    compaction_id: str
    number: int
    config: Mapping[str, Any]
    with_prompt: bool
    with_tools: bool
    start: int
    end: int
    instruction: str
    source_command_id: str | None = None
    pictures_named: bool = False
    shortened: int | None = None
    carried: Sequence[Json] = ()

    @classmethod
    def of(cls, data: Json, seq: int) -> "SummaryRequest":
        """Return what the data of an event say.

        Raises:
            SummaryRequestError: they are none, or of a later everfold.
        """
        _check(data, "data", _REQUIRED, _OPTIONAL, seq)
        _check(data["range"], "range", _ENDS, {}, seq)
        return cls(
            compaction_id=data["compactionId"],
            number=data["pass"],
            config=data["config"],
            with_prompt=data["withPrompt"],
            with_tools=data["withTools"],
            start=data["range"]["start"],
            end=data["range"]["end"],
            instruction=data["instruction"],
            source_command_id=data.get("sourceCommandId"),
            pictures_named=data.get("picturesNamed", False),
            shortened=data.get("shortened"),
            carried=data.get("carried", ()),
        )

    def fields(self) -> dict[str, Json]:
        """Return the data of the event."""
        fields: dict[str, Json] = {
            "compactionId": self.compaction_id,
            "sourceCommandId": self.source_command_id,
            "pass": self.number,
            "config": dict(self.config),
            "withPrompt": self.with_prompt,
            "withTools": self.with_tools,
            "range": {"start": self.start, "end": self.end},
            "picturesNamed": self.pictures_named or None,
            "shortened": self.shortened,
            "carried": list(self.carried) or None,
            "instruction": self.instruction,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def on(self, session: Session) -> LlmRequest:
        """Return the request itself, of a session as it was when the event was stored.

        Raises:
            SummaryRequestError: the log does not hold what the event speaks of.
        """
        made_of = SummaryInput(
            session_id=session.id,
            compaction_id=self.compaction_id,
            head=self._head(session),
            units=(Unit(self._messages(session), 0),),
            config=self.config,
            tools=_tools(session) if self.with_tools else (),
            instruction=self.instruction,
            limit=None,
            access_path=logged_access_path(session),
        )
        return made_of.request(made_of.units, self.carried)

    def _head(self, session: Session) -> tuple[Message, ...]:
        if not self.with_prompt:
            return ()
        nodes = session.nodes
        event = session.event(nodes[0]) if nodes else None
        if event is None or event.type != SYSTEM:
            raise _missing(session, "there is no prompt at the head of the conversation")
        return tuple(_shown(session, nodes[:1]))

    def _messages(self, session: Session) -> tuple[Message, ...]:
        places = {seq: place for place, seq in enumerate(session.nodes)}
        start, end = places.get(self.start, -1), places.get(self.end, -1)
        messages = _shown(session, session.nodes[start : end + 1]) if 0 <= start <= end else []
        if not messages:
            raise _missing(session, f"the messages {self.start} to {self.end} are not shown there")
        if self.pictures_named:
            messages = [
                with_pictures_named(each) if each["role"] == "assistant" else each
                for each in messages
            ]
        return tuple(messages) if self.shortened is None else (as_text(messages, self.shortened),)


def summary_request(session: Session) -> LlmRequest:
    """Return the request for a summary that was dispatched after a session's last event.

    Args:
        session: as it was after a `compaction/request`.

    Raises:
        SummaryRequestError: the event does not say what was sent, or is none.
        SessionError: the log cannot be folded here.
    """
    event = session.state.last
    if event is None:
        raise SummaryRequestError("the log is empty")
    return SummaryRequest.of(event.data, event.seq).on(session)


def _check(
    data: Json, where: str, required: Mapping[str, type], optional: Mapping[str, type], seq: int
) -> None:
    """Refuse data that lack a field, or have one of a wrong kind, or one that nobody here knows."""
    if not isinstance(data, Mapping):
        raise SummaryRequestError(f"{where} is no object", seq)
    kinds = {**required, **optional}
    for name in sorted(data.keys() | required.keys()):
        if name not in data or name not in kinds:
            fault = "is not known to this everfold" if name in data else "is missing"
            raise SummaryRequestError(f"{where}.{name} {fault}", seq)
        value, kind = data[name], kinds[name]
        # A truth value is a whole number to Python, and none here.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise SummaryRequestError(f"{where}.{name} is no {kind.__name__}", seq)


def _missing(session: Session, reason: str) -> SummaryRequestError:
    return SummaryRequestError(reason, session.next_seq - 1)


def _shown(session: Session, seqs: Sequence[int]) -> list[Message]:
    wanted = frozenset(seqs)
    return [message for seq, message in session.messages().items() if seq in wanted]


def _tools(session: Session) -> Sequence[Any]:
    event = session.latest("request/header")
    tools: Sequence[Any] = () if event is None else event.data["header"].get("tools") or ()
    return tools
