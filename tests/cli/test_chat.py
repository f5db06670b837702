"""`everfold chat` with a pipe for its input: a line is a message, a slash begins a command."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from everfold.store.urls import open_store
from tests.cli.programs import Outcome, run_process, started
from tests.cli.talking import PATIENCE_S, crashed, events_of, scripted, turn_ends, types_of
from tests.providers.pictures import img


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chat.sqlite'}"


def chat(url: str, *lines: str, arguments: tuple[str, ...] = ()) -> Outcome:
    stdin = "".join(f"{line}\n" for line in lines).encode()
    return run_process("chat", *arguments, "--store", url, stdin=stdin)


def sessions_of(url: str) -> list[str]:
    with open_store(url, create=False, read_only=True) as store:
        return [each.stream_id for each in store.streams()]


def said(url: str) -> list[Any]:
    return [each.data["content"] for each in events_of(url) if each.type == "user/message"]


def test_each_line_is_a_message(url: str) -> None:
    outcome = chat(url, "one", "", "two")

    assert outcome.status == 0
    assert outcome.out == ("You said 'one'; I see 0 image(s).\nYou said 'two'; I see 0 image(s).\n")
    assert turn_ends(url) == ["completed", "completed"]


@pytest.mark.parametrize("arguments", [(), ("--id", "mine")])
@pytest.mark.parametrize("lines", [(), ("/help", "/images", "/compact", "/omit 3:0", "/quit")])
def test_a_chat_that_is_left_without_a_word_leaves_no_session(
    url: str, arguments: tuple[str, ...], lines: tuple[str, ...]
) -> None:
    outcome = chat(url, *lines, arguments=arguments)

    assert "Traceback" not in outcome.err
    assert sessions_of(url) == []


def test_the_first_message_begins_the_session(url: str) -> None:
    outcome = chat(url, "one")

    first, begun, *_ = outcome.err.splitlines()
    assert first.startswith("[a new session: echo of scripted, profile scripted; ")
    assert begun == "[session session-1]"
    assert sessions_of(url) == ["session-1"]


def test_a_title_begins_the_session_too(url: str) -> None:
    chat(url, "/title The ferry", arguments=("--id", "mine"))

    assert types_of(url, "mine") == ["session/title"]


def test_commands_about_what_was_said_say_that_nothing_was(url: str) -> None:
    outcome = chat(url, "/images", "/compact", "/omit 3:0", "one")

    assert "[nothing was summarised: nothing was said yet]" in outcome.err
    assert "[nothing was said yet, so there is no image to decide about]" in outcome.err
    assert outcome.out.splitlines() == [
        "0 in all, 0 shown to models, 0 omitted",
        "You said 'one'; I see 0 image(s).",
    ]


def test_a_taken_id_is_refused_before_anything_is_said(url: str) -> None:
    chat(url, "one", arguments=("--id", "mine"))

    outcome = chat(url, "two", arguments=("--id", "mine"))

    assert (outcome.status, outcome.out) == (1, "")
    assert "session id 'mine' is taken" in outcome.err
    assert turn_ends(url, "mine") == ["completed"]


def test_two_chats_that_wait_get_a_session_each(tmp_path: Path, url: str) -> None:
    with (
        started("chat", "--store", url, stdin=subprocess.PIPE) as one,
        started("chat", "--store", url, stdin=subprocess.PIPE) as other,
    ):
        both = [one, other]
        for process in both:
            assert process.stderr is not None
            assert b"a new session" in process.stderr.readline()
        told = [process.communicate(b"one\n", timeout=PATIENCE_S)[1] for process in both]

    assert [process.returncode for process in both] == [0, 0]
    assert [b"[session session-1]" in told[0], b"[session session-2]" in told[1]] == [True, True]
    assert sessions_of(url) == ["session-1", "session-2"]


def test_a_last_line_without_an_end_is_a_message_too(url: str) -> None:
    outcome = run_process("chat", "--store", url, stdin=b"one\ntwo")

    assert outcome.out.count("You said") == 2


def test_a_backslash_joins_lines(url: str) -> None:
    chat(url, "one\\", "two")

    assert said(url) == [[{"type": "text", "text": "one\ntwo"}]]


def test_two_slashes_begin_a_message_with_one(url: str) -> None:
    chat(url, "//etc is a folder")

    assert said(url) == [[{"type": "text", "text": "/etc is a folder"}]]


def test_help_lists_every_command(url: str) -> None:
    outcome = chat(url, "/help")

    for name in (
        "image",
        "file",
        "images",
        "omit",
        "bring-back",
        "compact",
        "title",
        "help",
        "quit",
    ):
        assert f"\n/{name}" in f"\n{outcome.out}"


def test_nothing_after_quit_is_said(url: str) -> None:
    outcome = chat(url, "/quit", "one")

    assert (outcome.status, outcome.out) == (0, "")


def test_an_unknown_command_is_refused_and_the_next_line_taken(url: str) -> None:
    outcome = chat(url, "/nope", "one")

    assert outcome.status == 1
    assert "[there is no command /nope; /help lists them]" in outcome.err
    assert outcome.out == "You said 'one'; I see 0 image(s).\n"


def test_a_title_is_stored(url: str) -> None:
    chat(url, "one", "/title The ferry")

    title = next(each.data for each in events_of(url) if each.type == "session/title")
    assert (title["title"], title["source"]) == ("The ferry", {"kind": "user"})


def test_images_are_omitted_and_brought_back(tmp_path: Path, url: str) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(img(300, shade=ord(name[0])))

    outcome = chat(
        url,
        "/image a.png b.png",
        "look",
        "/omit 3:0 3:1",
        "look",
        "/bring-back 3:1",
        "look",
        "/images",
    )

    shown = [line for line in outcome.out.splitlines() if line.startswith("You said")]
    assert outcome.status == 0
    seen = [line.partition("see ")[2] for line in shown]
    assert seen == ["2 image(s).", "0 image(s).", "1 image(s)."]
    assert "2 in all, 1 shown to models, 1 omitted" in outcome.out
    assert types_of(url).count("image/offload") == types_of(url).count("image/bring-back") == 1


def test_files_go_with_the_next_message(tmp_path: Path, url: str) -> None:
    (tmp_path / "tides.csv").write_text("hour,metres")
    (tmp_path / "a.png").write_bytes(img(300, shade=1))

    outcome = chat(url, "/file tides.csv", "/image a.png", "look", "thanks")

    assert outcome.status == 0
    assert "[1 file goes with the next message]" in outcome.err
    assert "[1 image and 1 file go with the next message]" in outcome.err
    assert [[block["type"] for block in content] for content in said(url)] == [
        ["text", "file", "image"],
        ["text"],
    ]


def test_a_file_goes_with_the_first_message(tmp_path: Path, url: str) -> None:
    (tmp_path / "tides.csv").write_text("hour,metres")

    outcome = chat(url, "look", arguments=("--file", "tides.csv"))

    assert outcome.status == 0
    assert [block["type"] for block in said(url)[0]] == ["text", "file"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("/image everfold.toml", "here: /file PATH"),
        ("/file nowhere.csv", "the file 'nowhere.csv' cannot be read"),
        ("/file", "name a file: /file PATH"),
        ("/image nowhere.png", "the image 'nowhere.png' cannot be read"),
        ("/image", "name a file"),
        ("/image 'half", "No closing quotation"),
        ("/omit 5", "'5' names no image"),
        ("/omit", "name images as /images lists them"),
        ("/omit 99:0", "nothing was said yet"),
        ("/title", "give a title"),
    ],
)
def test_a_wrong_command_says_why_and_ends_nothing(
    tmp_path: Path, url: str, line: str, reason: str
) -> None:
    scripted(tmp_path)
    outcome = chat(url, line, "one")

    assert reason in outcome.err
    assert (outcome.status, outcome.out) == (1, "You said 'one'; I see 0 image(s).\n")


def test_an_image_that_is_not_there_is_refused(url: str) -> None:
    outcome = chat(url, "one", "/omit 99:0")

    assert outcome.status == 1
    assert "target 99 is not on the surface" in outcome.err


def test_a_short_session_is_not_summarised(url: str) -> None:
    outcome = chat(url, "one", "/compact")

    assert outcome.status == 0
    assert "[nothing was summarised: " in outcome.err


def test_older_messages_are_replaced_by_a_summary(tmp_path: Path, url: str) -> None:
    path = scripted(
        tmp_path, {"text": "Noted."}, {"text": "Yes."}, {"text": "They described a crane."}
    )
    path.write_text(
        path.read_text() + "[plugin.compaction]\nkeep_tokens = 20\nmin_span_tokens = 20\n"
    )

    outcome = chat(url, "The crane lifts forty tonnes. " * 40, "Noted?", "/compact")

    assert outcome.status == 0
    assert "replaced by a summary" in outcome.err
    assert types_of(url)[-1] == "compaction/end"


def test_a_failed_message_gives_exit_code_1_and_the_next_one_is_asked(
    tmp_path: Path, url: str
) -> None:
    scripted(tmp_path, {"fails": "INVALID_REQUEST", "message": "no"}, {"text": "Here."})

    outcome = chat(url, "one", "two")

    assert (outcome.status, outcome.out) == (1, "Here.\n")
    assert "[INVALID_REQUEST: no; the provider refuses something in the history" in outcome.err


def test_a_session_goes_on(url: str) -> None:
    chat(url, "one", arguments=("--id", "mine"))

    outcome = chat(url, "two", arguments=("mine",))

    assert outcome.status == 0
    assert turn_ends(url, "mine") == ["completed", "completed"]


def test_a_crashed_session_tells_how_to_take_it_over(url: str) -> None:
    crashed(url)

    refused = chat(url, "hello", arguments=("broken",))
    taken = chat(url, "hello", arguments=("broken", "--resume"))

    assert refused.status == 1
    assert "if it is gone, add --resume, or run `everfold resume broken`" in refused.err
    assert "sessions.resume" not in refused.err
    assert (taken.status, turn_ends(url, "broken")) == (0, ["interrupted", "completed"])


def test_an_unknown_session_is_refused(url: str) -> None:
    outcome = chat(url, "one", arguments=("typo",))

    assert outcome.status == 1
    assert "'typo'" in outcome.err
    assert types_of(url, "typo") == []


def test_bytes_that_are_no_text_are_repaired(url: str) -> None:
    outcome = run_process("chat", "--store", url, stdin=b"caf\xe9\n")

    assert outcome.status == 0
    assert "content/repaired" in types_of(url)


def test_an_interrupt_closes_the_turn_and_ends_the_program(tmp_path: Path, url: str) -> None:
    scripted(tmp_path, {"text": "once upon a time", "hangs": True})
    with started("chat", "--store", url, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"tell me\n")
        process.stdin.flush()
        begun = process.stdout.read(4)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)

    assert (begun, process.returncode) == (b"once", 130)
    assert turn_ends(url) == ["aborted"]


def test_a_recorded_chat_is_replayed(tmp_path: Path, url: str) -> None:
    (tmp_path / "a.png").write_bytes(img(300, shade=1))
    (tmp_path / "tides.csv").write_text("hour,metres")
    lines = (
        "one",
        "/file tides.csv",
        "/image a.png",
        "look",
        "/omit 11:0",
        "/title Mine",
        "/compact",
        "two",
    )
    recorded = chat(url, *lines, arguments=("--record", "mine.jsonl"))

    outcome = run_process("replay", "mine.jsonl", "--json")

    told = json.loads(outcome.out)
    assert recorded.status == 0
    assert (outcome.status, told["equal"], told["requests"]) == (0, True, 3)
    assert str(tmp_path) not in (tmp_path / "mine.jsonl").read_text()


def test_only_a_new_session_is_recorded(url: str) -> None:
    chat(url, "one", arguments=("--id", "mine"))

    outcome = chat(url, "two", arguments=("mine", "--record", "mine.jsonl"))

    assert outcome.status == 1
    assert "a recording begins with a new session" in outcome.err
