"""A refused `run` or `chat` leaves nothing behind: no session, and no id that is taken."""

from pathlib import Path

import pytest

from everfold.store.urls import open_store
from tests.cli.conftest import Run
from tests.cli.programs import run_process

TOO_LONG = b"a" * 17_000_000


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'run.sqlite'}"


def sessions_of(url: str) -> list[str]:
    with open_store(url, create=False, read_only=True) as store:
        return [summary.stream_id for summary in store.streams()]


@pytest.mark.parametrize("tool", ["nomod.x:y", "json:nofun", "json"])
def test_a_tool_that_cannot_be_loaded_leaves_no_session(
    run: Run, tmp_path: Path, url: str, tool: str
) -> None:
    (tmp_path / "everfold.toml").write_text(f'extends = "scripted"\ntools = ["{tool}"]\n')

    outcome = run("run", "hello", "--store", url)

    assert outcome.status == 1
    assert tool in outcome.err
    assert sessions_of(url) == []


def test_a_prompt_that_no_event_can_hold_leaves_no_session_and_its_id_free(url: str) -> None:
    refused = run_process("run", "--store", url, "--id", "big", stdin=TOO_LONG)
    left = sessions_of(url)
    answered = run_process("run", "hello", "--store", url, "--id", "big")

    assert refused.status == 1
    assert "the event takes 17000" in refused.err
    assert left == []
    assert (answered.status, sessions_of(url)) == (0, ["big"])


def test_a_first_message_that_no_event_can_hold_leaves_no_session(url: str) -> None:
    outcome = run_process("chat", "--store", url, stdin=TOO_LONG + b"\n")

    assert outcome.status == 1
    assert "the event takes 17000" in outcome.err
    assert sessions_of(url) == []


def test_a_chat_goes_on_after_a_refused_first_message(url: str) -> None:
    outcome = run_process("chat", "--store", url, stdin=TOO_LONG + b"\nhello\n")

    assert "You said 'hello'" in outcome.out
    assert sessions_of(url) == ["session-1"]


@pytest.mark.parametrize("place", ["missing/a.jsonl", "there", "there/x.jsonl/a.jsonl", "x" * 300])
@pytest.mark.parametrize("command", [("run", "hello"), ("chat",)])
def test_a_recording_that_cannot_be_written_is_refused_before_anything_is_asked(
    run: Run, tmp_path: Path, url: str, command: tuple[str, ...], place: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x.jsonl").touch()

    outcome = run(*command, "--record", place, "--store", url)

    assert (outcome.status, outcome.out) == (1, "")
    assert f"the recording '{place}'" in outcome.err
    assert not (tmp_path / "run.sqlite").exists()


def test_a_refused_run_leaves_no_recording(run: Run, tmp_path: Path, url: str) -> None:
    outcome = run("run", "hello", "--session", "nobody", "--record", "a.jsonl", "--store", url)

    assert outcome.status == 1
    assert not (tmp_path / "a.jsonl").exists()
