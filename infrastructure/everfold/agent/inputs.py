"""Inputs on their way into a session's queue, and out of it again when nobody wants an answer any more."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from everfold.agent.cancelling import start
from everfold.agent.content import AdmitImages, Content, Part, content_of
from everfold.agent.errors import InputError
from everfold.agent.inbox import Target, disowned, insertion, withdrawal
from everfold.agent.log import SessionLog
from everfold.agent.tools import ImageData
from everfold.agent.wishes import repaired, user_message
from everfold.host.access import finished
from everfold.session.deciding import AppendEvent, checked_event_id
from everfold.session.errors import EventIdReusedError, SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json, json_equal
from everfold.session.payload import check_message
from everfold.session.session import Session

log = logging.getLogger("everfold.agent")

USER: Mapping[str, Json] = {"kind": "user"}

Input = Part | Sequence[Part]


@dataclass(frozen=True, slots=True)
class Given:
    """An input that can be put to a model; nothing of it is stored yet.

    Attributes:
        message: the user's message that it makes.
        key: the caller's id of it, None for none.
        repairs: the event that says what was mended in it, none if nothing was.
    """

    message: Mapping[str, Json]
    key: str | None
    repairs: Sequence[AppendEvent]

    @property
    def message_id(self) -> str:
        """The id of the message."""
        return str(self.message["id"])


@dataclass(frozen=True, slots=True)
class Inputs:
    """The queued inputs of one session.

    Attributes:
        admit: stores images that users give; without it they are refused.
    """

    log: SessionLog
    admit: AdmitImages | None

    async def given(self, content: Input, key: str | None, source: Mapping[str, Json]) -> Given:
        """Return an input as a message.

        Args:
            key: the caller's id of this input; what was put with it before is not put again (B10).

        Raises:
            InputError: the content cannot be put to a model.
        """
        checked = await asyncio.to_thread(self._content, _parts(content))
        message_id = self.log.new_id() if key is None else f"input-{checked_event_id(key)}"
        message = user_message(message_id, checked.blocks, source)
        fault = check_message(message, "user")
        if fault is not None:
            raise InputError(f"the input makes no message: {fault}")
        return Given(message, key, repaired({}, message_id, checked.repairs))

    async def put(self, given: Given, target: Target) -> int:
        """Store an input in a queue; return a seq at or before its queueing.

        Raises:
            EventIdReusedError: the key was used for other content.
            SessionError: the store failed.
        """
        sessions, session_id, key, first = self.log.sessions, self.log.session_id, given.key, 0

        def plan(session: Session) -> list[AppendEvent]:
            nonlocal first
            earlier = sessions.store.find_append(session_id, key) if key else ()
            first = earlier[0].seq if earlier else session.next_seq
            if key and earlier:
                _check_same(session_id, key, earlier, given.message)
                return []
            inbox = self.log.inbox.at(session)
            return [insertion(inbox, target, given.message, event_id=key), *given.repairs]

        await self.log.load()
        await self.log.append(plan)
        return first

    async def put_shielded(self, given: Given) -> int:
        """Store an input for a turn of its own; it is taken back if the caller is cancelled meanwhile.

        Raises:
            as `put`
        """
        storing = start(self.put(given, "next-turn"), "everfold input")
        try:
            return await asyncio.shield(storing)
        except asyncio.CancelledError:
            await finished(storing)
            if not storing.cancelled() and storing.exception() is None:
                await self.take_back(given)
            raise

    async def take_back(self, given: Given) -> None:
        """Take an input back that no turn has taken yet; one with a key waits on for its caller.

        No cancellation cuts this off, and a store that fails only leaves the input where it is.
        """
        if given.key is not None:
            return
        reader, message_id = self.log.inbox, given.message_id
        taking = start(
            self.log.append(lambda session: withdrawal(reader.at(session), message_id)),
            "everfold withdrawal",
        )
        await finished(taking)
        failure = None if taking.cancelled() else taking.exception()
        if failure is not None:
            log.error("an input of session %r waits on", self.log.session_id, exc_info=failure)

    async def waits(self, message_id: str) -> bool:
        """Tell whether an input waits for a turn of its own."""
        session = await self.log.load()
        inbox = await asyncio.to_thread(self.log.inbox.at, session)
        return any(item.get("id") == message_id for item in inbox.next_turn)

    async def disown(self, session: Session) -> None:
        """Cancel what a fork inherited in its queues: it was said to the parent (C7)."""
        reader = self.log.inbox
        inherited = await asyncio.to_thread(reader.inherited, session)
        if inherited.next_turn or inherited.next_step:
            await self.log.append(lambda session: disowned(inherited, reader.at(session)))

    def _content(self, parts: Sequence[Part]) -> Content:
        try:
            content = content_of(parts, self.admit)
        except SessionError:
            raise
        except (ValueError, TypeError) as error:
            raise InputError(f"the input cannot be used: {error}") from error
        if not content.blocks:
            raise InputError("the input is empty")
        return content


def _parts(content: object) -> tuple[Part, ...]:
    """Return the parts of an input; a part by itself is an input of one.

    Raises:
        InputError: it is no content.
    """
    if isinstance(content, (str, ImageData, Mapping)):
        return (content,)
    if isinstance(content, (bytes, bytearray)) or not isinstance(content, Iterable):
        kind = type(content).__name__
        raise InputError(f"the input is {kind}; give text, or a list of texts, images and blocks")
    return tuple(content)


def _check_same(
    session_id: str, key: str, earlier: Sequence[Recorded], message: Mapping[str, Json]
) -> None:
    """Refuse a key that was used for other content."""
    inserted = earlier[0].data.get("inserted", [])
    if len(inserted) != 1 or not json_equal(inserted[0].get("content"), message["content"]):
        raise EventIdReusedError(session_id, key)
