"""A request for a summary: what its event tells of it, and the request that comes of that and the log.

The rule to keep: what is sent is made here, of the very event that is stored, so that it can be
made again. The texts that stand around and between what the log holds are part of the format.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

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


def _wire_name(name: str) -> str:
    return "pass" if name == "number" else to_camel(name)


class _Logged(BaseModel):
    """Data of the event, with the wire's field names in snake case."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=_wire_name,
        populate_by_name=True,
    )


class NodeRange(_Logged):
    """Two nodes and all between them, by their positions on the surface (R290)."""

    start: int
    end: int


class SummaryRequest(_Logged):
    """What a `compaction/request` holds: all of a request that the log does not say otherwise.

    Attributes:
        number: which pass of the summary it is, from 1.
        config: what it is sent with.
        with_prompt: whether the prompt at the conversation's head is sent; so for its tools.
        range: the nodes whose messages this pass summarises.
        pictures_named: whether pictures in the model's own messages are only named.
        shortened: if the messages are given as one text, how many characters (Unicode code points)
            of its beginning, and as many of its end, are kept; all of it, if it has no more.
        carried: the blocks of the summary of the passes before.
    """

    compaction_id: str
    source_command_id: str | None = None
    number: int
    config: dict[str, Any]
    with_prompt: bool
    with_tools: bool
    range: NodeRange
    pictures_named: bool = False
    shortened: int | None = None
    carried: list[dict[str, Any]] = []
    instruction: str

    @classmethod
    def of(cls, data: Json, seq: int) -> "SummaryRequest":
        """Return what the data of an event say.

        Raises:
            SummaryRequestError: they are none, or of a later everfold.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(str(part) for part in fault["loc"]) or "data"
            raise SummaryRequestError(
                f"it is not understood: {where}: {fault['msg']}", seq
            ) from error

    def fields(self) -> dict[str, Json]:
        """Return the data of the event."""
        return self.model_dump(by_alias=True, exclude_defaults=True)

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
        start, end = places.get(self.range.start, -1), places.get(self.range.end, -1)
        messages = _shown(session, session.nodes[start : end + 1]) if 0 <= start <= end else []
        if not messages:
            ends = f"{self.range.start} to {self.range.end}"
            raise _missing(session, f"the messages {ends} are not shown there")
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


def _missing(session: Session, reason: str) -> SummaryRequestError:
    return SummaryRequestError(reason, session.next_seq - 1)


def _shown(session: Session, seqs: Sequence[int]) -> list[Message]:
    wanted = frozenset(seqs)
    return [message for seq, message in session.messages().items() if seq in wanted]


def _tools(session: Session) -> Sequence[Any]:
    event = session.latest("request/header")
    tools: Sequence[Any] = () if event is None else event.data["header"].get("tools") or ()
    return tools
