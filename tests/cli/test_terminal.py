"""What reaches a terminal or a pipe: no control sequence of a log, tables only where they can be shown."""

import json
import re
from pathlib import Path

import pytest

from everfold.cli.visible import one_line, visible, visible_json
from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent
from tests.cli.conftest import Run
from tests.cli.programs import run_on_terminal, run_process, run_with_terminal_for_errors
from tests.talks import assistant, text, user

HOSTILE = (
    "red \x1b[31mtext\x1b[0m, title \x1b]0;owned\x07, link \x1b]8;;http://x\x1b\\, clip \x1b]52;c;eA==\x07, "
    "csi \x9b2J, bell \x07, return \rover, back \b\b, nul \x00, del \x7f, "
    "bidi \u202eevil\u202c \u2066iso\u2069 \u200f, line \u2028 sep, tag \U000e0041"
)
FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
COMMANDS = (
    ("list", "--titles"),
    ("show", "hostile"),
    ("show", "hostile", "--original"),
    ("log", "hostile"),
    ("audit", "hostile", "--steps"),
    ("audit", "--all"),
    ("fork", "hostile"),
    ("resume", "hostile"),
    ("export", "hostile", "-o"),
    ("show", f"hostile {HOSTILE}".replace("\0", "")),
)


@pytest.fixture
def hostile(sqlite_url: str, tmp_path: Path) -> str:
    """The URL of a store whose session holds control sequences wherever text may stand."""
    call = {"type": "tool-call", "id": HOSTILE, "name": HOSTILE, "arguments": HOSTILE}
    with open_sessions(sqlite_url) as sessions:
        sessions.create("hostile", cwd="/" + HOSTILE)
        sessions.append_batch(
            "hostile",
            (
                AppendEvent(HOSTILE, {"title": HOSTILE}, {"ignorable": True}),
                AppendEvent("session/title", {"title": HOSTILE, "messageSeqs": [], "source": "u"}),
                user(HOSTILE, text(HOSTILE), {"type": HOSTILE}),
                assistant("a", text(HOSTILE), call),
                AppendEvent("command/run", {"commandId": HOSTILE, "name": HOSTILE}),
            ),
        )
    return sqlite_url


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:20])
def test_no_control_sequence_of_a_log_reaches_a_pipe(
    run: Run, hostile: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """I7."""
    more = [str(tmp_path / "out.jsonl")] if command[-1] == "-o" else []

    outcome = run(*command, *more, "--store", hostile)

    assert FORBIDDEN.findall(outcome.out + outcome.err) == []
    assert outcome.out + outcome.err != ""


@pytest.mark.parametrize("command", COMMANDS[:5], ids=lambda command: " ".join(command)[:20])
def test_no_control_sequence_of_a_log_reaches_a_terminal(
    hostile: str, command: tuple[str, ...]
) -> None:
    outcome = run_on_terminal(*command, "--store", hostile, env={"NO_COLOR": "1"})

    # The terminal's driver itself turns a line's end into a return and a newline; rich hides and
    # styles nothing under NO_COLOR but bold.
    shown = re.sub(r"\x1b\[[0-9;]*m", "", outcome.out.replace("\r\n", "\n"))
    assert FORBIDDEN.findall(shown) == []
    assert outcome.status == 0


@pytest.mark.parametrize(
    "command", [("list",), ("show", "hostile"), ("log", "hostile"), ("audit", "hostile")]
)
def test_json_keeps_the_true_value_escaped(
    run: Run, hostile: str, command: tuple[str, ...]
) -> None:
    """I7: the value is exactly the stored one, and no control stands in the bytes."""
    outcome = run(*command, "--store", hostile, "--json")

    assert FORBIDDEN.findall(outcome.out) == []
    values = [json.loads(line) for line in outcome.out.splitlines()]
    assert (json.dumps(HOSTILE)[1:-1] in json.dumps(values)) is (command[0] != "audit")


def test_an_export_to_a_terminal_is_escaped_and_means_the_same(run: Run, hostile: str) -> None:
    piped = run("export", "hostile", "--store", hostile).out.rstrip("\n").split("\n")

    outcome = run_on_terminal("export", "hostile", "--store", hostile)

    lines = outcome.out.replace("\r\n", "\n").rstrip("\n").split("\n")
    assert FORBIDDEN.findall("".join(lines)) == []
    assert [json.loads(line) for line in lines] == [json.loads(line) for line in piped]


def test_a_pipe_gets_plain_text(quay_file: str) -> None:
    outcome = run_process("list", "--store", quay_file)

    assert outcome.out.isascii()
    assert "\x1b" not in outcome.out


def test_a_terminal_gets_a_table(quay_file: str) -> None:
    outcome = run_on_terminal("list", "--store", quay_file)

    assert "─" in outcome.out
    assert "\x1b[1m" in outcome.out


def test_no_color_is_respected_on_a_terminal(quay_file: str) -> None:
    outcome = run_on_terminal("list", "--store", quay_file, env={"NO_COLOR": "1"})

    assert re.search(r"\x1b\[[0-9;]*3[0-9]", outcome.out) is None
    assert "quay" in outcome.out


def test_a_dumb_terminal_gets_plain_text(quay_file: str) -> None:
    outcome = run_on_terminal("list", "--store", quay_file, env={"TERM": "dumb"})

    assert outcome.out.replace("\r\n", "\n").isascii()
    assert "\x1b" not in outcome.out


def test_a_progress_bar_goes_to_a_terminal_and_leaves_the_output_whole(quay_file: str) -> None:
    outcome = run_with_terminal_for_errors("audit", "--all", "--json", "--store", quay_file)

    assert json.loads(outcome.out)["sessions"][0]["sound"] is True
    assert "auditing" in outcome.err


def test_markup_of_a_log_is_shown_as_it_is(run: Run, sqlite_url: str) -> None:
    with open_sessions(sqlite_url) as sessions:
        sessions.create("[red]x[bold] :smile:")

    outcome = run_on_terminal("list", "--store", sqlite_url)

    assert "[red]x[bold] :smile:" in outcome.out


def test_a_message_cannot_pretend_to_be_another_one(run: Run, sqlite_url: str) -> None:
    with open_sessions(sqlite_url) as sessions:
        sessions.create("liar")
        sessions.append_batch("liar", (user("u", text("hello\n\n[1] assistant\n    I agree")),))

    outcome = run("show", "liar", "--store", sqlite_url)

    heads = [line for line in outcome.out.splitlines() if line.startswith("[")]
    assert heads == ["[0] user"]


@pytest.mark.parametrize("words", ["plain", "naïve Ω 漢字", "👩‍👩‍👧", "שלום", "tab\there\nnew"])
def test_text_that_steers_nothing_is_left_as_it_is(words: str) -> None:
    assert visible(words) == words


def test_every_control_and_bidi_character_becomes_an_escape() -> None:
    assert visible("\x1b\x9b\r\x00") == r"\x1b\x9b\x0d\x00"
    assert visible("\u202e\u2066\ufeff") == r"\u202e\u2066\ufeff"
    assert visible("\U000e0041") == r"\U000e0041"


def test_one_line_holds_no_newline_and_is_cut() -> None:
    assert one_line("a\nb\tc") == r"a\nb\tc"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


@pytest.mark.parametrize("code", [*range(0x7F, 0xA0), 0x202E, 0x2028, 0xFEFF, 0xE0041])
def test_escaped_json_means_the_same(code: int) -> None:
    raw = json.dumps({"a": chr(code)}, ensure_ascii=False)

    escaped = visible_json(raw)

    assert escaped.isascii()
    assert json.loads(escaped) == {"a": chr(code)}


def test_a_narrow_terminal_shows_a_session_id_in_one_piece(sqlite_url: str) -> None:
    with open_sessions(sqlite_url) as sessions:
        sessions.create("harbour-office-42")

    outcome = run_on_terminal("list", "--store", sqlite_url, env={"COLUMNS": "40"})

    assert "harbour-office-42" in outcome.out
