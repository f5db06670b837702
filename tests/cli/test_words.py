"""Refusals in the words of what was typed: options, messages, images."""

import json

import pytest

from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent
from tests.cli.conftest import Run
from tests.talks import talk


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--type", "tool/cal"), "no event of type tool/cal is there; did you mean tool/call?"),
        (("--first", "14"), "--first 14: the session has events 0 to 13"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_log_without_any_such_event_says_so(
    run: Run, quay_file: str, options: tuple[str, ...], said: str, more: tuple[str, ...]
) -> None:
    outcome = run("log", "quay", *options, *more, "--store", quay_file)

    assert (outcome.status, outcome.out, outcome.err) == (0, "", f"everfold: {said}\n")


def test_a_type_like_no_other_is_told_those_that_there_are(run: Run, quay_file: str) -> None:
    wanted = ("--type", "bogus", "--first", "12", "--last", "13")

    outcome = run("log", "quay", *wanted, "--store", quay_file)

    assert outcome.err.startswith("everfold: no event of type bogus is there; there are ")
    assert outcome.err.endswith("turn/end\n")


def test_a_session_without_events_says_so(run: Run, quay_file: str) -> None:
    with open_sessions(quay_file) as sessions:
        sessions.create("empty")

    outcome = run("log", "empty", "--store", quay_file)

    assert (outcome.status, outcome.err) == (0, "everfold: session 'empty' has no event yet\n")


def test_a_range_that_is_upside_down_is_wrong_usage(run: Run, quay_file: str) -> None:
    outcome = run("log", "quay", "--first", "5", "--last", "3", "--store", quay_file)

    assert outcome.status == 2
    assert "--last 3 is before --first 5" in outcome.err


@pytest.mark.parametrize("command", ["show", "fork", "export"])
@pytest.mark.parametrize("at", ["999", "-1"])
def test_an_event_that_is_not_there_is_named_as_it_was_typed(
    run: Run, quay_file: str, command: str, at: str
) -> None:
    outcome = run(command, "quay", "--at", at, "--store", quay_file)

    assert outcome.status == 1
    assert outcome.err == f"everfold: --at {at}: the session has events 0 to 13\n"


def test_a_fork_inside_the_first_turn_says_that_nothing_is_before_it(
    run: Run, quay_file: str
) -> None:
    outcome = run("fork", "quay", "--at", "5", "--store", quay_file)

    assert outcome.status == 1
    assert outcome.err == (
        "everfold: events 0 to 5 end inside the turn that starts at seq 0, and nothing is before it; "
        "copy up to the end of a turn: `everfold log SESSION --type turn/end` shows where turns end\n"
    )


def test_a_fork_inside_a_later_turn_names_the_place_before_it(run: Run, sqlite_url: str) -> None:
    with open_sessions(sqlite_url) as sessions:
        talk(sessions)
        sessions.append_batch("quay", (AppendEvent("turn/start", {"turn": 2}),))

    outcome = run("fork", "quay", "--at", "14", "--store", sqlite_url)

    assert "starts at seq 14; `--at 13` copies what is before it; " in outcome.err
    assert run("fork", "quay", "--at", "13", "--store", sqlite_url).status == 0


@pytest.mark.parametrize(
    ("command", "image", "code", "said"),
    [
        ("omit", "3:9", "offload-index", "image 3:9 is beyond the message's 1 image, which is 3:0"),
        ("bring-back", "3:1", "offload-index", "beyond the message's 1 image, which is 3:0"),
        ("omit", "2:0", "offload-index", "image 2:0 is beyond the message's 0 images"),
        ("omit", "77:0", "offload-target", "target 77 is not on the surface"),
    ],
)
def test_an_image_that_is_not_there_is_named_as_it_was_typed(
    run: Run, quay_file: str, command: str, image: str, code: str, said: str
) -> None:
    outcome = run(command, "quay", image, "--store", quay_file, "--json")

    error = json.loads(outcome.err)["error"]
    assert (outcome.status, error["code"]) == (1, code)
    assert said in error["message"]
    assert "seq" not in error
