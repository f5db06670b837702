"""A retry is the same append again: what says something else is refused."""

import pytest

from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent
from everfold.session.errors import EventIdReusedError
from everfold.session.frozen import Json
from tests.domain.kit import user
from tests.host.kit import hello, types

MARKER = {"op": "replace", "startSeq": 0, "endSeq": 0}
REPLACING = {"surfaceOp": MARKER, "sourceEventSeqs": [0]}


def test_a_repeated_event_id_at_another_place_is_refused(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello("first")])
    sessions.append("s", "user/message", user("m"), {"surfaceOp": "append"}, event_id="k")

    with pytest.raises(EventIdReusedError, match="'k'"):
        sessions.append("s", "user/message", user("m"), REPLACING, event_id="k")

    assert types(sessions, "s") == ["user/message", "user/message"]


@pytest.mark.parametrize(
    ("type_", "data", "options"),
    [
        ("user/message", user("m"), {"surfaceOp": "append"}),
        ("user/message", user("m"), {"surfaceOp": "append", "sourceEventSeqs": [0]}),
        ("user/message", user("m"), {"surfaceOp": MARKER, "sourceEventSeqs": [0.0]}),
        ("todo/write", {"n": 3.0}, None),
        ("todo/write", {}, {}),
        ("acme/note", [], {"ignorable": True}),
    ],
)
def test_a_repeated_append_gives_the_first_answer_whatever_its_options(
    sessions: Sessions, type_: str, data: Json, options: dict[str, Json] | None
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello("first")])
    first = sessions.append("s", type_, data, options, event_id="k")

    again = sessions.append_batch("s", [AppendEvent(type_, data, options, "k")])

    assert again == (first,)
