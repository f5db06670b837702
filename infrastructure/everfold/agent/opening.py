"""Opening turns and steps: input is taken in the very commit that opens what it belongs to."""

from collections.abc import Sequence

from everfold.agent import wishes
from everfold.agent.errors import TurnOpenError
from everfold.agent.inbox import claim
from everfold.agent.inputs import Given
from everfold.agent.log import OwnedTurn
from everfold.agent.loop import Loop
from everfold.session.deciding import AppendEvent, message
from everfold.session.frozen import Json
from everfold.session.session import Session


async def open_turn(loop: Loop, given: Given | None = None) -> OwnedTurn | None:
    """Take the next input and open a turn with it, in one commit.

    Args:
        given: an input that is not stored yet; the first one that waits if None.

    Returns:
        the turn; None, and nothing was stored, if nothing waits, or if something waits that comes
        before what was given.

    Raises:
        TurnOpenError: a turn is open already; nothing was stored.
    """
    number = 0

    def plan(session: Session) -> Sequence[AppendEvent]:
        nonlocal number
        start = session.latest("turn/start")
        if start is not None and session.is_turn_open:
            raise TurnOpenError(session.id, start.data.get("turn"), start.seq)
        inbox = loop.log.inbox.at(session)
        number = 1 if start is None else int(start.data.get("turn", 0)) + 1
        opening = [wishes.turn_start(number)]
        if given is not None:
            if inbox.next_turn:
                return ()
            opening = [*given.repairs, *opening]
            return opening + open_step(loop, session, number, 1, (given.message,))
        wanted = claim(inbox, "next-turn", 1)
        if not wanted.messages:
            return wanted.wishes
        opening += wanted.wishes
        return opening + open_step(loop, session, number, 1, wanted.messages)

    await loop.log.load()
    events = await loop.log.append(plan)
    start = next((event for event in events if event.type == "turn/start"), None)
    return None if start is None else OwnedTurn(loop.log.session_id, number, start.seq)


def open_step(
    loop: Loop, session: Session, turn: int, step: int, first: Sequence[Json] = ()
) -> list[AppendEvent]:
    """Return the events that open a step: what waits for the next step joins it.

    Args:
        first: messages that come before those.
    """
    joining = claim(loop.log.inbox.at(session), "next-step")
    opening = [*joining.wishes, wishes.step_start(turn, step)]
    if not session.nodes:
        data = wishes.system_data(turn, step, loop.log.new_id(), loop.settings.system_prompt)
        opening.append(message("system/message", data))
    return opening + [message("user/message", item) for item in (*first, *joining.messages)]
