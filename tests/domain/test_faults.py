"""Each single fault after one rich log: refused by its code at every door, and nothing is left of it."""

from typing import Any

import pytest

from everfold.session import doors
from everfold.session.errors import SessionError
from tests.domain.faults import FAULTS, Fault
from tests.domain.kit import (
    append_all,
    assistant,
    composition,
    counting_means,
    image,
    new_session,
    system,
    text,
    tool_result,
    user,
    view,
)
from tests.domain.model import Writer


def rich() -> Writer:
    """A log with everything in it that a fault may need."""
    writer = Writer()
    writer.append("system/message", system("s", text("prompt")))
    writer.append("user/message", user("u", image(1), image(2), image(3)))
    writer.append("assistant/message", assistant("a", image(4)))
    writer.append("tool/result", tool_result("c", image(5)))
    writer.append("user/message", user("old"))
    writer.replace("user/message", user("new"), 4, 4)
    writer.omit({1: [0]})
    return writer


WRITER = rich()
MADE = [fault for make in FAULTS if (fault := make(WRITER)) is not None]


def test_the_rich_log_gives_room_for_every_fault() -> None:
    assert len(MADE) == len(FAULTS)
    assert len({fault.name for fault in MADE}) == len(MADE)


@pytest.mark.parametrize("door", [doors.restore, doors.seed])
@pytest.mark.parametrize("fault", MADE, ids=lambda fault: fault.name)
def test_a_door_refuses_it(fault: Fault, door: Any) -> None:
    log = WRITER.log()

    with pytest.raises(SessionError) as caught:
        door(log.header(), [*log.records, fault.record], composition(), counting_means())

    assert caught.value.code == fault.code


@pytest.mark.parametrize(
    "fault", [each for each in MADE if each.is_appendable], ids=lambda fault: fault.name
)
def test_an_append_refuses_it_and_nothing_is_left(fault: Fault) -> None:
    session = new_session()
    append_all(session, WRITER.records)
    before = view(session)

    with pytest.raises(SessionError) as caught:
        append_all(session, [fault.record])

    assert caught.value.code == fault.code
    assert view(session) == before
    assert len(session.collect_events()) == len(WRITER.records) + 1
