"""list, show, log and audit on a healthy store, on both databases."""

import json

import pytest

from everfold.host.opening import open_sessions
from tests.cli.conftest import Run
from tests.talks import FAILURE, talk


def test_list_shows_each_session(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        sessions.fork("quay", child_id="child")

    outcome = run("list", "--store", quay)

    head, child, parent = outcome.out.splitlines()
    assert head.split()[:2] == ["SESSION", "EVENTS"]
    assert (child.split()[:2], child.split()[-1]) == (["child", "15"], "quay")
    assert parent.split()[:2] == ["quay", "14"]
    assert outcome.status == 0


def test_list_gives_json_lines(run: Run, quay: str) -> None:
    outcome = run("list", "--store", quay, "--json")

    (record,) = map(json.loads, outcome.out.splitlines())
    assert (record["session"], record["events"], record["damage"]) == ("quay", 14, None)
    assert (record["lastType"], record["header"]["id"]) == ("turn/end", "quay")


def test_list_pages_by_after_prefix_and_limit(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        for name in ("a-1", "a-2", "a-3", "b-1"):
            sessions.create(name)
    wanted = ("--after", "a-1", "--prefix", "a-", "--limit", "1", "--json")

    outcome = run("list", "--store", quay, *wanted)

    assert [json.loads(line)["session"] for line in outcome.out.splitlines()] == ["a-2"]


@pytest.mark.parametrize("options", [None, {"ignorable": True}])
def test_list_shows_titles_when_asked(run: Run, quay: str, options: dict[str, bool] | None) -> None:
    with open_sessions(quay) as sessions:
        data = {"title": "The quay", "messageSeqs": [3], "source": "user"}
        sessions.append("quay", "session/title", data, options)

    outcome = run("list", "--store", quay, "--titles", "--json")

    assert json.loads(outcome.out)["title"] == "The quay"


def test_list_of_an_empty_store_says_so(run: Run, store_url: str) -> None:
    with open_sessions(store_url):
        pass

    outcome = run("list", "--store", store_url)

    assert (outcome.status, outcome.out) == (0, "no session in this store yet\n")


def test_show_gives_what_the_model_sees(run: Run, quay: str) -> None:
    outcome = run("show", "quay", "--store", quay)

    assert "[image omitted: quay.png, image/png, 331x211, 1.4 kB, sha256:abababab" in outcome.out
    assert "      short\n" in outcome.out
    assert "a long story" not in outcome.out
    assert outcome.out.endswith("\n5 messages, 0 images, 1 omitted\n")


def test_show_as_of_a_seq(run: Run, quay: str) -> None:
    outcome = run("show", "quay", "--store", quay, "--at", "5")

    assert "[image: quay.png" in outcome.out
    assert outcome.out.endswith("\n2 messages, 1 image, 0 omitted\n")


def test_show_original_gives_what_people_saw(run: Run, quay: str) -> None:
    outcome = run("show", "quay", "--store", quay, "--original")

    assert "[image: quay.png" in outcome.out
    assert "[10] user  (hidden from the model)" in outcome.out
    assert "a long story" in outcome.out


def test_show_of_a_request_gives_what_it_showed_the_model(run: Run, quay: str) -> None:
    first = run("show", "quay", "--store", quay, "--request", "1", "--json")
    second = run("show", "quay", "--store", quay, "--request", "2", "--json")

    shown = [json.loads(each.out)["messages"][1]["message"] for each in (first, second)]
    assert ["offloaded" in message["content"][1] for message in shown] == [False, True]


def test_show_gives_one_json_document(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        expected = list(sessions.load("quay").messages().items())

    document = json.loads(run("show", "quay", "--store", quay, "--json").out)

    assert [(each["seq"], each["message"]) for each in document["messages"]] == expected
    assert (document["session"], document["seq"], document["view"]) == ("quay", 13, "model")
    assert (document["replaceGeneration"], document["contentGeneration"]) == (1, 2)


def test_show_of_the_last_messages(run: Run, quay: str) -> None:
    document = json.loads(run("show", "quay", "--store", quay, "--json", "--last", "2").out)

    assert [each["seq"] for each in document["messages"]] == [11, 12]


def test_show_of_a_session_without_events(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        sessions.create("empty")

    outcome = run("show", "empty", "--store", quay, "--original")

    assert outcome.out.startswith("empty, no event yet: every message as stored\n")
    assert outcome.status == 0


def test_log_prints_one_line_an_event(run: Run, quay: str) -> None:
    outcome = run("log", "quay", "--store", quay)

    lines = outcome.out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(14))
    assert lines[5].endswith(f"failed: {FAILURE['code']} too large")
    assert lines[6].endswith("targets image 0 of seq 3")
    assert lines[13].endswith("turn 1, reason completed")


def test_log_chooses_by_first_last_and_type(run: Run, quay: str) -> None:
    chosen = ("--first", "4", "--last", "7", "--type", "request/header", "--json")

    outcome = run("log", "quay", "--store", quay, *chosen)

    assert [json.loads(line)["seq"] for line in outcome.out.splitlines()] == [4, 7]


def test_log_gives_the_records_as_they_are_stored(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        rows = list(sessions.log("quay"))

    outcome = run("log", "quay", "--store", quay, "--json")

    expected = [{**row.record(), "eventId": row.event_id} for row in rows]
    assert list(map(json.loads, outcome.out.splitlines())) == expected


def test_audit_tells_what_changed_the_surface(run: Run, quay: str) -> None:
    outcome = run("audit", "quay", "--store", quay)

    assert outcome.status == 0
    assert "6  image/offload       changed 3 (plugin image-offload)\n" in outcome.out
    assert "11  tool/result         took the place of 10\n" in outcome.out
    assert "quay: sound, 14 events\n" in outcome.out
    assert "agree with the stored events: live, restored, detached\n" in outcome.out


def test_audit_gives_every_step_when_asked(run: Run, quay: str) -> None:
    outcome = run("audit", "quay", "--store", quay, "--steps", "--json")

    report = json.loads(outcome.out)
    assert [step["effect"] for step in report["steps"]][6:12] == [
        "changed", "nothing", "appended", "nothing", "appended", "hid",
    ]  # fmt: skip
    assert report["sound"] is True
    assert [view["agrees"] for view in report["views"]] == [True, True, True]


def test_audit_of_all_sessions_gives_one_document(run: Run, quay: str) -> None:
    with open_sessions(quay) as sessions:
        talk(sessions, "second")

    outcome = run("audit", "--all", "--store", quay, "--json")

    reports = json.loads(outcome.out)["sessions"]
    assert [(each["session"], each["sound"]) for each in reports] == [
        ("quay", True),
        ("second", True),
    ]


def test_a_child_tells_its_own_id_everywhere_and_its_parent_apart(run: Run, quay: str) -> None:
    """C9: nothing presents the parent's identity as the child's."""
    run("fork", "quay", "--id", "child", "--store", quay)

    shown = json.loads(run("show", "child", "--store", quay, "--json").out)
    audited = json.loads(run("audit", "child", "--store", quay, "--json").out)
    exported = json.loads(run("export", "child", "--store", quay).out.splitlines()[0])
    listed = json.loads(run("list", "--store", quay, "--json", "--prefix", "child").out)

    assert [each["session"] for each in (shown, audited, listed)] == ["child"] * 3
    assert (exported["id"], exported["parentSession"]) == ("child", "quay")
    assert listed["header"]["parentSession"] == "quay"


def test_the_store_may_be_named_before_the_command_or_by_the_environment(
    run: Run, quay_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("--store", quay_file, "list", "--json")
    monkeypatch.setenv("EVERFOLD_STORE", quay_file.removeprefix("sqlite:///"))

    from_environment = run("list", "--json")

    assert before.out == from_environment.out != ""
