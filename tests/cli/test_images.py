"""`everfold images`, `omit` and `bring-back`."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent, message
from tests.cli.conftest import Run
from tests.cli.talking import events_of


def image(number: int, name: str) -> dict[str, Any]:
    attachment = {
        "attachmentId": f"sha256:{number:064x}",
        "mediaType": "image/png",
        "bytes": 1500,
        "width": 30,
        "height": 20,
        "name": name,
    }
    return {"type": "image", "attachment": attachment}


@pytest.fixture
def album(store_url: str) -> str:
    """The URL of a store, on each database in turn, whose session `album` shows three images."""
    user = {"id": "u", "role": "user", "source": {"kind": "user"}}
    output = {
        "id": "a",
        "role": "assistant",
        "source": {"kind": "model", "provider": "p", "model": "m"},
        "content": [image(9, "drawn.png")],
    }
    with open_sessions(store_url) as sessions:
        sessions.create("album")
        batch = (
            message("user/message", {**user, "content": [image(1, "a.png"), image(2, "b.png")]}),
            message("assistant/message", {"turn": 1, "step": 1, "message": output, "stream": []}),
            message("user/message", {**user, "id": "u2", "content": [image(1, "a.png")]}),
            AppendEvent("image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]}),
        )
        sessions.append_batch("album", batch)
    return store_url


def listed(run: Run, url: str) -> list[Any]:
    outcome = run("images", "album", "--store", url, "--json")
    assert outcome.status == 0
    return [
        (each["image"], each["state"], each["decidedBy"])
        for each in json.loads(outcome.out)["images"]
    ]


def test_every_occurrence_has_its_state_and_who_decided_it(run: Run, album: str) -> None:
    assert listed(run, album) == [
        ("0:0", "omitted", {"seq": 3, "type": "image/offload"}),
        ("0:1", "retained", None),
        ("1:0", "output", None),
        ("2:0", "retained", None),
    ]


def test_people_get_a_table(run: Run, album: str) -> None:
    outcome = run("images", "album", "--store", album)

    lines = outcome.out.splitlines()
    assert lines[0].split()[:3] == ["IMAGE", "STATE", "DECIDED"]
    assert lines[1].split()[:6] == ["0:0", "omitted,", "missing", "3", "image/offload", "a.png"]
    assert lines[-2] == "4 in all, 2 shown to models, 1 omitted, 4 missing"


def test_an_omission_is_one_logged_decision_of_a_person(run: Run, album: str) -> None:
    outcome = run("omit", "album", "2:0", "0:1", "--store", album)

    last = events_of(album, "album")[-1]
    assert outcome.out == "2 images omitted from now on (seq 4, image/offload)\n"
    assert last.envelope()["actor"] == "user"
    assert [state for _, state, _ in listed(run, album)] == [
        "omitted",
        "omitted",
        "output",
        "omitted",
    ]


def test_a_brought_back_image_is_shown_again_and_names_the_decision(run: Run, album: str) -> None:
    outcome = run("bring-back", "album", "0:0", "--store", album, "--json")

    assert json.loads(outcome.out) == {
        "session": "album",
        "seq": 4,
        "type": "image/bring-back",
        "targets": [{"seq": 0, "imageIndexes": [0]}],
    }
    assert listed(run, album)[0] == ("0:0", "retained", {"seq": 4, "type": "image/bring-back"})


def test_several_indexes_may_follow_one_seq(run: Run, album: str) -> None:
    run("bring-back", "album", "0:0", "--store", album)

    outcome = run("omit", "album", "0:1,0", "--store", album)

    assert outcome.status == 0
    assert events_of(album, "album")[-1].data == {"targets": [{"seq": 0, "imageIndexes": [0, 1]}]}


@pytest.mark.parametrize(
    ("command", "words", "code", "reason"),
    [
        ("omit", ["0:0"], "offload-index", "image 0 is omitted already"),
        ("omit", ["0:5"], "offload-index", "beyond the message's 2 image"),
        ("omit", ["1:0"], "offload-target", "only images of user messages"),
        ("omit", ["9:0"], "offload-target", "target 9 is not on the surface"),
        ("omit", ["0:1", "0:1"], "offload-index", "increasing"),
        ("bring-back", ["0:1"], "offload-index", "is not omitted"),
    ],
)
def test_a_refused_decision_changes_nothing(
    run: Run, album: str, command: str, words: Sequence[str], code: str, reason: str
) -> None:
    outcome = run(command, "album", *words, "--store", album, "--json")

    error = json.loads(outcome.err)["error"]
    assert (outcome.status, error["code"]) == (1, code)
    assert reason in error["message"]
    assert len(events_of(album, "album")) == 4


@pytest.mark.parametrize("word", ["0", "0:", ":0", "a:b", "-1:0", "0:0:0", "0:1,", "\u0661:0"])
def test_a_word_that_names_no_image_is_wrong_usage(run: Run, sqlite_url: str, word: str) -> None:
    outcome = run("omit", "album", "--store", sqlite_url, "--", word)

    assert outcome.status == 2
    assert "names no image; write SEQ:INDEX" in outcome.err


def test_a_session_without_images_says_so(run: Run, quay_file: str) -> None:
    with open_sessions(quay_file) as sessions:
        sessions.create("plain")

    outcome = run("images", "plain", "--store", quay_file)

    assert outcome.out == "0 in all, 0 shown to models, 0 omitted\n"


@pytest.mark.parametrize("command", [("images",), ("omit", "0:0"), ("bring-back", "0:0")])
def test_an_unknown_session_is_refused(run: Run, quay_file: str, command: Sequence[str]) -> None:
    outcome = run(command[0], "typo", *command[1:], "--store", quay_file)

    assert outcome.status == 1
    assert "typo" in outcome.err
