"""The README's projection plugin holds the contract of every projection."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.plugins.plugin import Plugin
from everfold.projections.testing import Example, MessageProjectionContract, Refusal
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans, message
from everfold.session.errors import SessionError
from everfold.session.projection import MessageProjection
from everfold.session.session import Session

README = (Path(__file__).parent.parent.parent / "README.md").read_text("utf-8")
USER = {"id": "m1", "role": "user", "source": {"kind": "user"}}
SECRET = {**USER, "content": [{"type": "text", "text": "my PIN is 0000"}]}
RECORDS = [{"type": "user/message", "seq": 0, "time": 0, "data": SECRET, "surfaceOp": "append"}]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2, width=16)
    | st.text(max_size=3),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.sampled_from(("seq", "other")), inside, max_size=2)
    ),
    max_leaves=5,
)


def readme_projection() -> MessageProjection:
    """Return what the README's block defines before it uses it."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (block,) = [each for each in blocks if "MessageProjection(" in each]
    names: dict[str, Any] = {}
    exec(block.partition("with open_sessions")[0], names)
    return cast("Plugin", names["plugin"]).projections[0]


REDACT = readme_projection()


class TestReadmeRedaction(MessageProjectionContract):
    projection = REDACT
    examples = (Example("a user's message", RECORDS, {"seq": 0}, frozenset({0})),)
    refusals = (
        Refusal("no message", RECORDS, {"seq": 7}, "projection-rejected"),
        Refusal("a misspelt member", RECORDS, {"sq": 0}, "projection-rejected"),
        Refusal("no number", RECORDS, {"seq": [0]}, "projection-rejected"),
        Refusal("no object", RECORDS, None, "projection-rejected"),
    )


@given(data=json_values)
def test_data_are_taken_or_refused_with_an_error_of_a_session_and_leave_nothing(data: Any) -> None:
    header = {"version": 3, "id": "s", "createdAt": 0, "isSeeded": False}
    means = DecisionMeans(clock=lambda: 0, new_id=iter(map(str, range(99))).__next__)
    session = Session.create(header, Composition((REDACT,)), means)
    session.append_batch([message("user/message", SECRET)])
    before = session.messages()[0]

    try:
        session.append(REDACT.type, data)
    except SessionError:
        assert session.next_seq == 1
        assert session.messages()[0] == before
    else:
        assert session.messages()[0]["content"] == [{"type": "text", "text": "[redacted]"}]


def test_what_a_projection_raises_by_mistake_reaches_the_caller_and_leaves_nothing() -> None:
    def careless(event: Any, _history: Any) -> dict[int, Any]:
        raise KeyError(event.data["seq"])

    header = {"version": 3, "id": "s", "createdAt": 0, "isSeeded": False}
    means = DecisionMeans(clock=lambda: 0, new_id=iter(map(str, range(99))).__next__)
    projection = MessageProjection("acme/careless", careless, plugin="acme")
    session = Session.create(header, Composition((projection,)), means)

    with pytest.raises(KeyError) as caught:
        session.append("acme/careless", {"sq": 0})

    assert "plugin 'acme'" in caught.value.__notes__[0]
    assert session.next_seq == 0
