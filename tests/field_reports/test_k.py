"""Reports from the field, group K: logs of other versions, other plugins, other providers."""

import json
from io import BytesIO
from pathlib import Path

import pytest

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from everfold.plugins.plugin import Plugin
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import UnknownEventError
from everfold.session.frozen import Json, thaw
from everfold.session.vocabulary import EventType
from tests.audit.damage import execute
from tests.cli.conftest import Run
from tests.domain.kit import assistant, text
from tests.field_reports.kit import names, shown, turn
from tests.field_reports.witness import Witness, rows_of
from tests.host.kit import hello
from tests.interchange.files import Log, file_of
from tests.store.test_golden import load_postgres, load_sqlite

ACME = Plugin("acme", event_types=(EventType("acme/note"),))


def test_k1_a_required_type_is_refused_where_its_plugin_is_missing(
    store_url: str, everfold: Run
) -> None:
    with open_sessions(store_url, plugins=[ACME]) as sessions:
        sessions.create("s")
        sessions.append_batch("s", [hello("u-1"), AppendEvent("acme/note", {"n": 1}), hello("u-2")])
    with open_sessions(store_url) as without:
        without.create("other")

        with pytest.raises(UnknownEventError, match="'acme/note'") as written:
            without.append("other", "acme/note", {"n": 1})
        with pytest.raises(UnknownEventError, match="'acme/note'") as read:
            without.load("s")

        assert (written.value.seq, read.value.seq) == (0, 1)
        assert names(without, "s", at=0) == ["u-1"]
    shown = everfold("show", "s", "--at", "0", "--store", store_url)
    assert (shown.status, "hello" in shown.out) == (0, True)


def test_k1_an_ignorable_type_is_kept_and_passed_over_everywhere(
    sessions: Sessions, tmp_path: Path
) -> None:
    sessions.create("s")
    sessions.append("s", "acme/note", {"n": [1, None]}, {"ignorable": True})
    sessions.append_batch("s", [hello("u-1")])
    sessions.fork("s", child_id="child")
    export_session(sessions.store, "s", tmp_path / "s.jsonl")

    with open_sessions("sqlite://") as other:
        path = tmp_path / "s.jsonl"
        import_session(path, other.store, other.composition, other.means, session_id="again")
        kept = [next(iter(other.log("again"))).record()]
    kept += [next(iter(sessions.log(name))).record() for name in ("s", "child")]

    assert [(each["type"], thaw(each["data"]), each["ignorable"]) for each in kept] == [
        ("acme/note", {"n": [1, None]}, True)
    ] * 3
    assert names(sessions, "child") == ["u-1"]


def test_k2_a_log_whose_first_message_comes_before_any_step_goes_in_and_out(
    sessions: Sessions,
) -> None:
    log = Log()
    log.user()
    log.open_turn(1)
    log.user()
    log.close_turn(1)
    content = file_of(log.records)

    import_session([content], sessions.store, sessions.composition, sessions.means)
    sessions.append_batch("session-1", turn(2))

    assert len(names(sessions, "session-1")) == 4
    assert exported_prefix(sessions, "session-1", len(log.records)) == content


def exported_prefix(sessions: Sessions, session_id: str, count: int) -> bytes:
    """Return an export of a session's first events."""
    out = BytesIO()
    export_session(sessions.store, session_id, out, upto_seq=count - 1)
    return out.getvalue()


def test_k2_a_log_of_another_tool_is_refused_by_its_first_line(
    store_url: str, everfold: Run, tmp_path: Path
) -> None:
    path = tmp_path / "rollout.jsonl"
    meta = {"timestamp": "2026-01-01T00:00:00.000Z", "type": "session_meta", "payload": {"id": "x"}}
    path.write_text(json.dumps(meta) + "\n")

    outcome = everfold("import", str(path), "--store", store_url, "--json")

    (file,) = json.loads(outcome.out)["files"]
    assert (outcome.status, file["error"]["line"]) == (1, 1)
    assert file["error"]["code"] == "session-header"


@pytest.fixture
def golden_url(store_url: str) -> str:
    """The URL of a database of the first schema."""
    load = load_sqlite if store_url.startswith("sqlite:") else load_postgres
    load(store_url)
    return store_url


def test_k5_every_session_of_an_old_database_lists_folds_and_goes_on(
    golden_url: str, witness: Witness, everfold: Run
) -> None:
    witness.look()

    listed = everfold("list", "--store", golden_url, "--json")
    with open_sessions(golden_url) as sessions:
        (name,) = [each.stream_id for each in sessions.summaries()]
        before = shown(sessions, name)
        sessions.append_batch(name, [hello("new")])
        after = shown(sessions, name)
    told = json.loads(everfold("show", name, "--at", "8", "--store", golden_url, "--json").out)

    (record,) = [json.loads(line) for line in listed.out.splitlines()]
    assert (record["session"], record["damage"]) == (name, None)
    assert [each["message"] for each in told["messages"]] == before
    assert [each["id"] for each in before] == ["m3"]
    assert after[:-1] == before
    assert after[-1]["id"] == "new"


FIRST_FIELDS = b'{"eventId":"old","time":7,"data":'


@pytest.mark.parametrize("field", ["actor", "correlationId", "surfaceOp"])
def test_k5_a_field_that_old_rows_lack_fails_no_session(
    sessions: Sessions, store_url: str, witness: Witness, field: str
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello("u-1")])
    witness.damaged.add("s")
    data = rows_of(store_url)["s", 2][1].split(b',"data":', 1)[1]

    execute(
        store_url,
        "UPDATE stored_events SET state = ? WHERE originator_version = 2",
        FIRST_FIELDS + data,
    )

    with open_sessions(store_url) as host:
        (row,) = host.log("s")
        assert field not in row.envelope()
        assert names(host, "s") == ["u-1"]


PRIVATE: list[Json] = [
    {"type": "reasoning", "text": "so", "signature": "c2ln", "content": [{"type": "summary"}]},
    {"type": "acme-thought", "encrypted": "b64…", "parts": [None, {"k": []}]},
    {"type": "image", "attachment": {"attachmentId": "file-123", "mediaType": "image/png"}},
]


def test_k6_what_only_one_provider_understands_stays_in_the_log_as_it_is(
    sessions: Sessions, tmp_path: Path
) -> None:
    sessions.create("s")
    answer = assistant("a", *PRIVATE, text("answer"))
    answer["message"]["source"]["replayState"] = {"response": {"id": "rs_1", "items": [1]}}
    sessions.append_batch("s", [hello("u"), message("assistant/message", answer)])
    sessions.fork("s", child_id="child")
    export_session(sessions.store, "child", tmp_path / "child.jsonl")

    with open_sessions("sqlite://") as other:
        import_session(tmp_path / "child.jsonl", other.store, other.composition, other.means)
        views = [shown(sessions, "s"), shown(sessions, "child"), shown(other, "child")]

    assert [view[1] for view in views] == [answer["message"]] * 3
