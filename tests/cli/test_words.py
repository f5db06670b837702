"""Refusals in the words of what was typed: options, messages, images."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from everfold.cli.advising import message_of
from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent
from everfold.session.errors import UnknownEventError
from tests.cli.conftest import Run
from tests.cli.programs import environment
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


@pytest.mark.parametrize(
    ("typed", "meant"), [("lst", "list"), ("sohw", "show"), ("bringback", "bring-back")]
)
def test_a_mistyped_command_is_told_its_like(run: Run, typed: str, meant: str) -> None:
    outcome = run(typed)

    assert outcome.status == 2
    assert f"No such command {typed!r}. Did you mean {meant!r}?" in outcome.err


def test_a_command_like_no_other_is_only_refused(run: Run) -> None:
    outcome = run("xyzzy")

    assert outcome.status == 2
    assert "Did you mean" not in outcome.err


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_output_that_is_full_is_named(
    quay_file: str, more: tuple[str, ...], unbuffered: str
) -> None:
    arguments = ["log", "quay", *more, "--store", quay_file]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "everfold.cli.main", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(PYTHONUNBUFFERED=unbuffered),
            check=False,
        )

    assert done.returncode == 1
    assert b"the output could not be written: No space left on device" in done.stderr


def test_a_refusal_of_postgresql_is_one_line(run: Run) -> None:
    outcome = run("list", "--store", "postgresql://nobody@127.0.0.1:1/x")

    assert outcome.status == 1
    assert len(outcome.err.splitlines()) == 1
    assert "the server does not answer" in outcome.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print(1)\n", "line 1 is not JSON\n"),
        ("[1]\n", "line 1 has another form than a recording's lines"),
        ("{}\n", "line 1 cannot be read: it is not the head of a recording"),
        ('{"type": "recording", "version": 2}\n', "line 1 has no 'about'"),
    ],
)
def test_a_file_that_is_no_recording_is_told_in_words(
    run: Run, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)

    outcome = run("replay", str(path))

    assert outcome.status == 1
    assert f"is no recording: {said}" in outcome.err


def test_an_event_of_an_unknown_type_is_told_with_its_place() -> None:
    error = UnknownEventError("acme/redact", seq=7)

    assert message_of(error) == f"seq 7: {error}; `--at 6` shows what is before it"


def test_an_event_of_an_unknown_type_without_a_place_is_told_as_it_is() -> None:
    error = UnknownEventError("acme/redact")

    assert message_of(error) == str(error)
