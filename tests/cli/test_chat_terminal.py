"""`everfold chat` on a real terminal: keys, streams, signals."""

import signal
from pathlib import Path

import pytest

from tests.cli.talking import (
    CTRL_C,
    CTRL_D,
    Terminal,
    crashed,
    events_of,
    provided,
    scripted,
    terminal,
    turn_ends,
)
from tests.providers.answers import Answer, Refuse
from tests.providers.pictures import img
from tests.providers.strict_fake import strict_fake

SLOW = {"text": "one two three four five six seven eight", "pieces": 39, "pause_s": 0.05}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chat.sqlite'}"


def leave(chat: Terminal) -> None:
    """Press Ctrl-D at the prompt; before it the terminal would take it for something else."""
    chat.expect("> ")
    chat.type(CTRL_D, enter=False)


def test_an_answer_is_shown_and_ctrl_d_leaves(tmp_path: Path, url: str) -> None:
    scripted(tmp_path, {"text": "At 14:20."})

    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        chat.expect("[a new session: script-1 of scripted")
        chat.expect("> ")
        chat.type("When does the ferry leave?")
        chat.expect("[session session-1]")
        chat.expect("At 14:20.")
        leave(chat)
        status = chat.end()

    assert status == 0
    assert turn_ends(url) == ["completed"]


def test_ctrl_c_amid_an_answer_cancels_the_turn_and_not_the_session(
    tmp_path: Path, url: str
) -> None:
    scripted(tmp_path, SLOW, {"text": "Still here."})

    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("Count.")
        chat.expect("one two")
        chat.type(CTRL_C, enter=False)
        chat.expect("[cancelled; the session keeps what came]")
        chat.expect("> ")
        chat.type("Are you there?")
        chat.expect("Still here.")
        leave(chat)
        status = chat.end()

    kept = [event.data for event in events_of(url) if event.type == "assistant/message"]
    assert status == 0
    assert turn_ends(url) == ["aborted", "completed"]
    assert kept[0]["interrupted"] is True
    assert kept[0]["message"]["content"][0]["text"].startswith("one two")
    assert "eight" not in kept[0]["message"]["content"][0]["text"]


def test_ctrl_c_amid_a_request_that_hangs_hangs_up_on_the_provider(
    tmp_path: Path, url: str
) -> None:
    with strict_fake() as fake:
        provided(tmp_path, fake)
        fake.will(Answer("one two three four " * 30, between_s=0.2))
        with terminal("chat", "--store", url, cwd=tmp_path, FAKE_KEY="k-1234") as chat:
            chat.expect("> ")
            chat.type("Count.")
            chat.expect("one ")
            chat.type(CTRL_C, enter=False)
            chat.expect("[cancelled")
            chat.expect("> ")
            chat.type("Go on")
            chat.expect("Seen.")
            leave(chat)
            status = chat.end()
        hung_up = fake.disconnected.wait(30)

    assert (status, hung_up) == (0, True)
    assert turn_ends(url) == ["aborted", "completed"]


def test_ctrl_c_at_the_prompt_drops_the_line_and_stays(tmp_path: Path, url: str) -> None:
    scripted(tmp_path, {"text": "Hello."})

    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("do not say thi", enter=False)
        chat.expect("say thi")
        chat.type(CTRL_C, enter=False)
        chat.expect("[Ctrl-D or /quit leaves]")
        chat.expect("> ")
        chat.type("hi")
        chat.expect("Hello.")
        chat.expect("> ")
        chat.type("/quit")
        status = chat.end()

    said = [event.data["content"] for event in events_of(url) if event.type == "user/message"]
    assert status == 0
    assert said == [[{"type": "text", "text": "hi"}]]


def test_no_ctrl_c_at_the_prompt_is_missed_however_soon_after_a_key(
    tmp_path: Path, url: str
) -> None:
    scripted(tmp_path)

    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        for _ in range(300):
            chat.expect("> ")
            chat.type("x", enter=False)
            chat.expect("x")
            chat.type(CTRL_C, enter=False)
            chat.expect("[Ctrl-D or /quit leaves]")
        leave(chat)
        status = chat.end()

    assert status == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_closes_the_turn_and_ends_the_chat(
    tmp_path: Path, url: str, number: signal.Signals
) -> None:
    scripted(tmp_path, SLOW)

    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("Count.")
        chat.expect("one two")
        chat.process.send_signal(number)
        status = chat.end()

    assert status == 130
    assert turn_ends(url) == ["aborted"]


def test_a_signal_to_end_ends_a_chat_at_its_prompt(tmp_path: Path, url: str) -> None:
    scripted(tmp_path)

    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.process.send_signal(signal.SIGTERM)
        status = chat.end()

    assert status == 130


def test_an_image_goes_with_the_next_message(tmp_path: Path, url: str) -> None:
    scripted(tmp_path)
    (tmp_path / "the quay.png").write_bytes(img(300, shade=3))

    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("/image 'the quay.png'")
        chat.expect("[1 image goes with the next message]")
        chat.type("What is it?")
        chat.expect("I see 1 image(s).")
        chat.expect("> ")
        chat.type("/images")
        chat.expect("the quay.png")
        chat.expect("1 in all, 1 shown to models, 0 omitted")
        leave(chat)
        status = chat.end()

    assert status == 0


def test_a_failed_route_is_told_and_the_session_goes_on(tmp_path: Path, url: str) -> None:
    with strict_fake() as fake:
        provided(tmp_path, fake)
        fake.will(Refuse(401, b'{"error": {"message": "bad key k-1234"}}'), Answer("Here I am."))
        with terminal("chat", "--store", url, cwd=tmp_path, FAKE_KEY="k-1234") as chat:
            chat.expect("> ")
            chat.type("hello")
            chat.expect("AUTH")
            chat.expect("check the key of this route")
            chat.expect("> ")
            chat.type("again")
            chat.expect("Here I am.")
            leave(chat)
            status = chat.end()

    assert status == 0
    assert "k-1234" not in chat.shown
    assert chat.shown.count("AUTH") == 1
    assert turn_ends(url) == ["error", "completed"]


def test_a_model_cannot_steer_the_terminal(tmp_path: Path, url: str) -> None:
    """I7."""
    scripted(
        tmp_path,
        {"text": "red \x1b[31m title \x1b]0;owned\x07 over\r bidi \u202e end", "pieces": 60},
    )

    with terminal("chat", "--store", url, cwd=tmp_path, TERM="vt100") as chat:
        chat.expect("> ")
        chat.type("hello")
        chat.expect("end")
        leave(chat)
        chat.end()

    assert r"red \x1b[31m title \x1b]0;owned\x07 over\x0d bidi \u202e end" in chat.shown


def test_a_killed_chat_is_taken_over_and_its_answer_is_not_repeated(
    tmp_path: Path, url: str
) -> None:
    scripted(tmp_path, SLOW)
    with terminal("chat", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("Count.")
        chat.expect("one two")
        chat.process.kill()
        chat.end()
    scripted(tmp_path, {"text": "On we go."})

    with terminal("chat", "session-1", "--resume", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("hello")
        chat.expect("On we go.")
        leave(chat)
        status = chat.end()

    assert status == 0
    assert turn_ends(url) == ["interrupted", "completed"]
    assert "one two" not in chat.shown


def test_a_crashed_session_is_taken_over_when_asked(tmp_path: Path, url: str) -> None:
    scripted(tmp_path, {"text": "On we go."})
    crashed(url)

    with terminal("chat", "broken", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("hello")
        chat.expect("add --resume")
        leave(chat)
        chat.end()
    with terminal("chat", "broken", "--resume", "--store", url, cwd=tmp_path) as chat:
        chat.expect("> ")
        chat.type("hello")
        chat.expect("On we go.")
        leave(chat)
        status = chat.end()

    assert status == 0
    assert turn_ends(url, "broken") == ["interrupted", "completed"]
