"""`--continue` of `run` and `chat`: the newest session is gone on with."""

from pathlib import Path

import pytest

from everfold.host.opening import open_sessions
from tests.cli.conftest import Run
from tests.cli.programs import run_process
from tests.cli.talking import turn_ends


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("option", ["-c", "--continue"])
def test_the_session_with_the_latest_event_is_gone_on_with(
    run: Run, sqlite_url: str, option: str
) -> None:
    for name in ("b", "c", "a"):
        run("run", "hello", "--id", name, "--store", sqlite_url)
    run("run", "again", "--session", "b", "--store", sqlite_url)

    outcome = run("run", "more", option, "--store", sqlite_url)

    assert outcome.err == "[session b, turn 3: echo of scripted]\n"


def test_a_chat_goes_on_with_the_newest_session(run: Run, sqlite_url: str) -> None:
    run("run", "hello", "--store", sqlite_url)

    outcome = run_process("chat", "-c", "--store", sqlite_url, stdin=b"more\n")

    assert (outcome.status, outcome.out) == (0, "You said 'more'; I see 0 image(s).\n")
    assert turn_ends(sqlite_url) == ["completed", "completed"]


@pytest.mark.parametrize("command", [("run", "hello"), ("chat",)])
def test_without_a_session_there_is_nothing_to_go_on_with(
    run: Run, sqlite_url: str, command: tuple[str, ...]
) -> None:
    with open_sessions(sqlite_url):
        pass

    outcome = run(*command, "-c", "--store", sqlite_url)

    assert outcome.status == 1
    assert outcome.err == (
        "everfold: there is no session to go on with in this store; leave --continue out to "
        "begin one\n"
    )
    with open_sessions(sqlite_url) as sessions:
        assert list(sessions.summaries()) == []


def test_going_on_makes_no_store(run: Run, tmp_path: Path) -> None:
    outcome = run("run", "hello", "-c", "--store", str(tmp_path / "none.sqlite"))

    assert outcome.status == 1
    assert "there is no store at" in outcome.err
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize(
    "wanted", [("run", "hi", "--session", "a"), ("run", "hi", "--id", "a"), ("chat", "a")]
)
def test_another_session_beside_the_newest_is_wrong_usage(
    run: Run, sqlite_url: str, wanted: tuple[str, ...]
) -> None:
    run("run", "hello", "--id", "b", "--store", sqlite_url)

    outcome = run(*wanted, "--continue", "--store", sqlite_url)

    assert outcome.status == 2
    assert "--continue chooses the session" in outcome.err
