"""What an audit answers to ids that no session can have."""

import pytest

from everfold.audit.auditing import audit
from everfold.audit.requests import requests
from everfold.host.sessions import Sessions
from everfold.session.errors import IdError


@pytest.mark.parametrize("wanted", ["a\0b", "\ud800", "x" * 201, "a/b", ""])
def test_an_id_that_no_session_can_have_is_refused_as_an_id(
    sessions: Sessions, wanted: str
) -> None:
    with pytest.raises(IdError):
        audit(sessions, wanted)
    with pytest.raises(IdError):
        next(requests(sessions.store, wanted, sessions.composition))
