"""Session files of format versions 0 to 2: what becomes of each documented shape (group Z)."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import ImportResult, view_file
from everfold.projections.catalog import detached_composition
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.ports import SessionStore
from tests.interchange.files import TIME_MS, compressed
from tests.interchange.old_files import Old, Records, compacted, data_of, small, types

Take = Callable[..., ImportResult]


def shown(store: SessionStore, session_id: str = "old-1") -> list[tuple[str, Any]]:
    """Return role and text of what the model sees."""
    messages = Sessions(store, detached_composition()).load(session_id).messages()
    return [(each["role"], each["content"][0].get("text")) for each in messages]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_old_file_is_imported_as_version_3(
    version: int, store: SessionStore, take: Take
) -> None:
    result = take(small(version).content())

    created = next(iter(store.read("old-1", limit=1))).data
    assert (created["version"], created["isSeeded"]) == (3, False)
    assert "seedLength" not in created
    assert result.warnings == (f"the file has format version {version}; it was brought to 3",)
    assert shown(store) == [("system", "be brief"), ("user", "question"), ("assistant", "answer")]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_compressed_old_file_is_the_same(version: int, store: SessionStore, take: Take) -> None:
    take(compressed(small(version).content()))

    assert shown(store)[-1] == ("assistant", "answer")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_was_upgraded_is_exported_and_imported_as_version_3(
    version: int, store: SessionStore, take: Take
) -> None:
    take(small(version).content())
    out = io.BytesIO()
    export_session(store, "old-1", out)

    again = take(out.getvalue(), session_id="again")

    rows = [[r.record() for r in store.read(name, after=1)] for name in ("old-1", "again")]
    assert rows[0] == rows[1]
    assert again.warnings == ()


def test_the_prompt_becomes_a_message_that_takes_the_place_of_an_empty_one(
    upgraded: Callable[[Old], Records],
) -> None:
    """R349, in the order of recorded logs."""
    records = upgraded(small(2))

    assert types(records) == [
        "turn/start",
        "step/start",
        "system/message",
        "user/message",
        "system/message",
        "request/header",
        "assistant/message",
        "step/end",
        "turn/end",
    ]
    empty, prompt = records[2], records[4]
    assert [each["seq"] for each in records] == list(range(9))
    assert (empty["data"]["message"]["content"], empty["surfaceOp"]) == ([], "append")
    assert prompt["data"]["message"]["content"] == [{"type": "text", "text": "be brief"}]
    assert prompt["surfaceOp"] == {"op": "replace", "startSeq": 2, "endSeq": 2}
    assert prompt["sourceEventSeqs"] == [2]
    assert (empty["data"]["turn"], prompt["data"]["step"]) == (1, 1)
    assert "system" not in records[5]["data"]["header"]


def test_only_a_change_of_the_prompt_is_a_replacement(
    store: SessionStore, upgraded: Callable[[Old], Records]
) -> None:
    old = small(2)
    old.add("turn/start", {"turn": 2})
    old.add("step/start", {"turn": 2, "step": 1})
    for system in ("be brief", "be long", None, [{"type": "text", "text": "be kind"}]):
        old.header(system)

    records = upgraded(old)

    prompts = [each["message"]["content"] for each in data_of(records, "system/message")]
    assert [block["text"] for content in prompts for block in content] == [
        "be brief",
        "be long",
        "be kind",
    ]
    assert prompts[3] == []
    assert data_of(records, "system/message")[2]["turn"] == 2
    assert shown(store)[0] == ("system", "be kind")


def test_made_up_ids_are_the_same_each_time_and_tell_where_they_are_from(
    store: SessionStore, take: Take
) -> None:
    take(small(2).content())
    take(small(2).content(), session_id="again")

    ids = [
        [r.data["message"]["id"] for r in store.read(name, after=1) if r.type == "system/message"]
        for name in ("old-1", "again")
    ]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 2
    assert all(each.startswith("v2-to-v3-system-") for each in ids[0])


def test_k2_a_message_before_the_first_step_stands_behind_the_prompt(
    store: SessionStore, upgraded: Callable[[Old], Records]
) -> None:
    old = Old(2)
    old.add("turn/start", {"turn": 1})
    question = old.user("question")
    old.add("session/title", {"title": "t", "messageSeqs": [question], "source": {"kind": "user"}})
    old.add("step/start", {"turn": 1, "step": 1})
    old.header()
    old.assistant("answer")

    records = upgraded(old)

    assert types(records)[:4] == ["turn/start", "system/message", "user/message", "session/title"]
    assert data_of(records, "session/title")[0]["messageSeqs"] == [2]
    assert [role for role, _ in shown(store)] == ["system", "user", "assistant"]


def test_a_log_without_a_step_gets_no_system_message(
    store: SessionStore, upgraded: Callable[[Old], Records]
) -> None:
    old = Old(0)
    old.add("turn/start", {"turn": 1, "trigger": {"kind": "message"}})
    old.user("count the boats")

    assert types(upgraded(old)) == ["turn/start", "user/message"]
    assert shown(store) == [("user", "count the boats")]


def test_names_and_empty_fields_of_version_2_are_changed(
    store: SessionStore, take: Take, upgraded: Callable[[Old], Records]
) -> None:
    """R349, R350."""
    old = Old(2, agentPreset="code")
    old.add("step/start", {"turn": 1, "step": 1})
    old.header(tools=[], adapterDefaults={})
    old.add("agent-preset/selected", {"agentPreset": "code"})
    old.add("agent-preset/selected", {"agentPreset": "other"})
    old.add("tool/code-dispatch-start", {"rootCallId": "a"})
    old.add("tool/code-dispatch", {"rootCallId": "a"})

    records = upgraded(old)

    assert data_of(records, "request/header")[0]["header"] == {
        "config": {"provider": "p", "model": "m"}
    }
    assert data_of(records, "agent-preset/selected") == [
        {"agentPreset": "ptc"},
        {"agentPreset": "other"},
    ]
    assert types(records)[-2:] == ["tool/ptc-dispatch-start", "tool/ptc-dispatch"]
    assert next(iter(store.read("old-1", limit=1))).data["agentPreset"] == "ptc"


@pytest.mark.parametrize("version", [0, 1])
def test_every_seq_that_is_cited_is_renumbered(
    version: int, store: SessionStore, upgraded: Callable[[Old], Records]
) -> None:
    """R347, R348."""
    records = upgraded(compacted(version))

    def seq_of(name: str) -> int:
        return next(
            int(e["seq"])
            for e in records
            if e["data"].get("id", e["data"].get("message", {}).get("id")) == name
        )

    first, answer, result = seq_of("first"), seq_of("answer"), seq_of("t-c")
    by_type = {each["type"]: each for each in records}
    assert by_type["tool/result"]["sourceEventSeqs"] == [by_type["tool/call"]["seq"]]
    assert by_type["session/title"]["data"]["messageSeqs"] == [first]
    assert by_type["command/done"]["data"]["sourceEventSeq"] == by_type["command/run"]["seq"]
    accepted = by_type["session-log-deepseek/delivery-accepted"]["data"]["throughSeq"]
    assert records[accepted]["type"] == "assistant/message"
    summary = by_type["compaction/summary"]
    assert summary["data"]["shadowedRange"] == {"start": first, "end": result}
    assert summary["data"]["shadowedSeqs"] == [first, answer, result]
    replacing = records[summary["seq"] + 1]
    assert replacing["surfaceOp"] == {"op": "replace", "startSeq": first, "endSeq": result}
    assert replacing["sourceEventSeqs"] == [
        first,
        answer,
        result,
        by_type["compaction/start"]["seq"],
        summary["seq"],
    ]
    assert shown(store) == [("system", "be brief"), ("user", "summary"), ("user", "more")]


@pytest.mark.parametrize("has_marker", [True, False])
def test_the_inherited_part_of_an_old_fork_ends_with_its_marker(
    has_marker: bool, store: SessionStore, take: Take
) -> None:
    old = small(1)
    old.lines[0] |= {"seedLength": old.next_seq, "parentSession": "parent"}
    if has_marker:
        old.add("session/end-seed", {})
    old.user("own")

    take(old.content())

    session = Sessions(store, detached_composition()).load("old-1")
    records = [row.record() for row in store.read("old-1", after=1)]
    marker = records[session.inherited_count]
    assert session.header["isSeeded"] is True
    assert types(records).count("session/end-seed") == 1
    assert (marker["type"], marker["data"]) == ("session/end-seed", {"inherited": True})
    assert records[session.inherited_count - 1]["type"] == "turn/end"
    assert records[session.inherited_count + 1]["data"]["id"] == "own"


@pytest.mark.parametrize("length", [0, 2])
def test_an_old_fork_without_events_of_its_own_ends_with_the_marker(
    length: int, store: SessionStore, take: Take
) -> None:
    old = Old(0, seedLength=length)
    for number in range(length):
        old.user(f"u-{number}")

    take(old.content())

    assert Sessions(store, detached_composition()).load("old-1").inherited_count == length
    last = list(store.read("old-1"))[-1]
    assert (last.type, last.time >= TIME_MS) == ("session/end-seed", True)


def test_a_fork_of_version_2_keeps_its_markers(store: SessionStore, take: Take) -> None:
    old = small(2)
    old.lines[0]["isSeeded"] = True
    old.add("session/end-seed", {"inherited": True})
    old.user("own")

    take(old.content())

    assert Sessions(store, detached_composition()).load("old-1").inherited_count == 9


def test_an_ignorable_event_of_version_2_is_kept_as_it_is(
    upgraded: Callable[[Old], Records],
) -> None:
    old = small(2)
    note = {"seq": 3, "surfaceOp": {"op": "replace"}}
    old.add("acme/note", note, ignorable=True, surfaceOp={"start": 1}, sourceEventSeqs=[99])

    last = upgraded(old)[-1]

    assert (last["type"], last["data"], last["ignorable"]) == ("acme/note", note, True)
    assert (last["surfaceOp"], last["sourceEventSeqs"]) == ({"start": 1}, [99])


def test_ranges_of_version_2_are_expanded(upgraded: Callable[[Old], Records]) -> None:
    old = Old(2)
    for number in range(4):
        old.user(f"u-{number}")
    marker = {"op": "replace", "start": 0, "end": 3}
    old.user("all", surfaceOp=marker, sourceEventSeqs=[[0, 3]])

    assert upgraded(old)[-1]["sourceEventSeqs"] == [0, 1, 2, 3]


def test_a_torn_last_line_of_an_old_file_is_dropped(store: SessionStore, take: Take) -> None:
    result = take(small(1).content().removesuffix(b"\n"))

    assert "line 10 has no newline at its end" in result.warnings[1]
    assert shown(store)[-1] == ("assistant", "answer")


def test_an_old_file_is_shown_up_to_its_defect(
    tmp_path: Path, composition: Composition, means: DecisionMeans
) -> None:
    old = small(1)
    old.add("acme/note", {})
    path = tmp_path / "session.v1.jsonl"
    path.write_bytes(old.content())

    view = view_file(path, composition, means)

    assert view.refusal is not None
    assert (view.refusal.line, view.refusal.seq, view.refusal.code) == (11, 11, "unknown-event")
    assert [each["role"] for each in view.session.messages()] == ["system", "user", "assistant"]
    assert view.session.next_seq == 9


def test_the_file_stays_as_it_is(tmp_path: Path, take: Take) -> None:
    """R351."""
    path = tmp_path / "session.jsonl"
    path.write_bytes(small(0).content())

    take(path)

    assert path.read_bytes() == small(0).content()
    assert json.loads(path.read_bytes().splitlines()[0])["version"] == 0
