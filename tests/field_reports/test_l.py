"""Reports from the field, group L: a tenant is a store of its own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from everfold.attachments.admission import Source, admit
from everfold.attachments.errors import AttachmentMissingError
from everfold.attachments.filesystem import FileAttachments
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.session.errors import SessionExistsError, SessionNotFoundError
from tests.attachments.images import png
from tests.cli.conftest import Run
from tests.domain.kit import text
from tests.field_reports.kit import names, turn
from tests.field_reports.witness import Witness
from tests.host.kit import another, hello
from tests.postgres import fresh_schema

Tenants = tuple[str, str]


@pytest.fixture(params=["sqlite", "postgres"])
def tenants(request: pytest.FixtureRequest, tmp_path: Path, witness: Witness) -> Iterator[Tenants]:
    """The stores of two tenants: two files, or two schemas of one server."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 't1.sqlite'}", f"sqlite:///{tmp_path / 't2.sqlite'}"
        return
    server_url: str = request.getfixturevalue("postgres_server_url")
    with fresh_schema(server_url) as one, fresh_schema(server_url) as two:
        yield one, two


COMMANDS = [
    ("show", "ID"),
    ("show", "ID", "--original"),
    ("show", "ID", "--at", "0"),
    ("show", "ID", "--request", "1"),
    ("log", "ID"),
    ("audit", "ID"),
    ("export", "ID"),
    ("fork", "ID"),
    ("fork", "ID", "--at", "3"),
    ("resume", "ID"),
    ("delete", "ID", "--yes"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_l1_another_tenants_id_is_answered_like_one_that_nobody_has(
    tenants: Tenants, everfold: Run, command: tuple[str, ...]
) -> None:
    with open_sessions(tenants[0]) as theirs, open_sessions(tenants[1]) as ours:
        theirs.create("theirs")
        theirs.append_batch("theirs", turn(1))
        ours.create("ours")

    def answer(session_id: str) -> tuple[int, str, str]:
        arguments = [session_id if each == "ID" else each for each in command]
        outcome = everfold(*arguments, "--store", tenants[1], "--json")
        return outcome.status, outcome.out, outcome.err.replace(session_id, "ID")

    foreign, unknown = answer("theirs"), answer("nobody")

    assert foreign == unknown
    assert json.loads(foreign[2])["error"]["code"] == "fork-not-found"
    with open_sessions(tenants[0]) as theirs:
        assert names(theirs, "theirs") == ["u-1", "a-1"]


def test_l1_a_list_shows_a_tenants_own_sessions_alone(tenants: Tenants, everfold: Run) -> None:
    for url, name in zip(tenants, ("one", "two"), strict=True):
        with open_sessions(url) as sessions:
            sessions.create(name)

    outcome = everfold("list", "--store", tenants[1], "--json")

    assert [json.loads(line)["session"] for line in outcome.out.splitlines()] == ["two"]


def test_l2_two_tenants_use_one_id_at_once(tenants: Tenants) -> None:
    with open_sessions(tenants[0]) as one, open_sessions(tenants[1]) as two:
        for host, name in ((one, "t1"), (two, "t2")):
            host.create("support-1")
            host.append_batch("support-1", [hello(name)])

        assert (names(one, "support-1"), names(two, "support-1")) == (["t1"], ["t2"])


def test_l3_a_second_tenant_in_one_process_starts_empty(tenants: Tenants) -> None:
    with open_sessions(tenants[0]) as one, open_sessions(tenants[1]) as two:
        first = one.create()
        one.append_batch(first.id, turn(1))
        one.load(first.id)

        second = two.create()

        assert (first.id, second.id) == ("session-1", "session-1")
        assert names(two, second.id) == []
        assert names(one, first.id) == ["u-1", "a-1"]


def test_l5_a_purged_session_stays_purged_and_its_fork_and_picture_stay(
    sessions: Sessions, tmp_path: Path
) -> None:
    files = FileAttachments(tmp_path / "attachments")
    shared, own = admit([Source(png(40, 30)), Source(png(50, 30))], files)
    blocks = [{"type": "image", "attachment": dict(ref)} for ref in (shared, own)]
    sessions.create("s")
    sessions.append_batch("s", [hello("u", *blocks)])
    sessions.create("other")
    sessions.append_batch("other", [hello("u", blocks[0])])
    sessions.fork("s", boundary=0, child_id="fork")
    late = another(sessions.store)
    late.load("s")

    assert (sessions.delete("s"), sessions.delete("s")) == (True, False)
    assert (files.delete(own["attachmentId"]), files.delete(own["attachmentId"])) == (True, False)

    with pytest.raises(SessionExistsError, match="deleted"):
        late.append_batch("s", [hello("late", text("a late delivery"))])
    with pytest.raises(SessionNotFoundError):
        sessions.load("s")
    assert files.read(shared["attachmentId"]) != b""
    with pytest.raises(AttachmentMissingError):
        files.read(own["attachmentId"])
    assert names(sessions, "fork") == names(sessions, "other") == ["u"]
