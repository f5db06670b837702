"""`everfold compact` and `everfold replay`."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.programs import run_process, started
from tests.cli.talking import KEY, PATIENCE_S, provided, scripted, types_of, wait_for
from tests.providers.answers import Answer, Refuse
from tests.providers.strict_fake import strict_fake

SPANS = "[plugin.compaction]\nkeep_tokens = 20\nmin_span_tokens = 20\n"
LONG = "The crane at berth four lifts containers of up to forty tonnes. " * 20


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAKE_KEY", KEY)


@pytest.fixture
def url(run: Run, tmp_path: Path) -> str:
    """The URL of a store whose session has two turns of a scripted model."""
    scripted(tmp_path)
    url = f"sqlite:///{tmp_path / 'compact.sqlite'}"
    for prompt in (LONG, "Noted?"):
        words = ("--session", "session-1") if prompt != LONG else ()
        assert run("run", prompt, "--store", url, *words).status == 0
    return url


def add(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_a_model_of_the_profile_writes_the_summary(run: Run, tmp_path: Path, url: str) -> None:
    with strict_fake() as fake:
        add(provided(tmp_path, fake), SPANS)
        fake.will(Answer("They described a crane."))

        outcome = run("compact", "session-1", "--store", url, "--focus", "weights")

    assert outcome.status == 0
    assert "replaced by a summary (seq " in outcome.out
    assert "weights" in json.dumps(fake.last.body)
    assert types_of(url)[-5:] == [
        "compaction/start",
        "compaction/request",
        "compaction/summary",
        "user/message",
        "compaction/end",
    ]


def test_json_tells_what_the_summary_stands_for(run: Run, tmp_path: Path, url: str) -> None:
    add(scripted(tmp_path, {"text": "They described a crane."}), SPANS)

    outcome = run("compact", "session-1", "--store", url, "--json")

    told = json.loads(outcome.out)
    assert (told["compacted"], told["passes"]) == (True, 1)
    assert told["tokensBefore"] > told["tokensAfter"]
    assert told["hidden"][0] == 3


def test_a_small_session_is_left_alone(run: Run, url: str) -> None:
    run("run", "hi", "--store", url, "--id", "small")
    known = types_of(url, "small")

    outcome = run("compact", "small", "--store", url, "--json")

    told = json.loads(outcome.out)
    assert (outcome.status, told["compacted"]) == (0, False)
    assert types_of(url, "small") == known


def test_the_scripted_model_does_not_summarise_what_another_one_said(
    run: Run, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'real.sqlite'}"
    with strict_fake() as fake:
        path = provided(tmp_path, fake)
        run("run", LONG, "--store", url)
    path.unlink()

    outcome = run("compact", "session-1", "--store", url)

    assert outcome.status == 2
    assert "was run by 'fake'; name its profile with --profile" in outcome.err
    assert "compaction/start" not in types_of(url)


def test_a_failed_summary_says_why_and_frees_the_lock(run: Run, tmp_path: Path, url: str) -> None:
    with strict_fake() as fake:
        add(provided(tmp_path, fake), SPANS)
        fake.will(Refuse(401, f'{{"error": {{"message": "bad {KEY}"}}}}'.encode()))

        outcome = run("compact", "session-1", "--store", url, "--json")

    error = json.loads(outcome.err)["error"]
    assert (outcome.status, error["code"]) == (1, "summary")
    assert KEY not in outcome.err
    assert types_of(url)[-3:] == ["compaction/start", "compaction/request", "compaction/end"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_summary_frees_the_lock(
    tmp_path: Path, url: str, number: signal.Signals
) -> None:
    with strict_fake() as fake:
        add(provided(tmp_path, fake), SPANS)
        fake.will(Answer("They described a crane. " * 100, between_s=0.2))
        with started("compact", "session-1", "--store", url, env={"FAKE_KEY": KEY}) as process:
            wait_for(url, "compaction/start")
            process.send_signal(number)
            process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert types_of(url)[-3:] == ["compaction/start", "compaction/request", "compaction/end"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_summary_that_is_interrupted_while_it_waits_to_ask_again_frees_the_lock(
    tmp_path: Path, url: str, number: signal.Signals
) -> None:
    with strict_fake() as fake:
        add(provided(tmp_path, fake), SPANS)
        fake.will(Refuse(429, b"slow down", {"retry-after": "60"}))
        with started("compact", "session-1", "--store", url, env={"FAKE_KEY": KEY}) as process:
            wait_for(url, "compaction/retry?")
            process.send_signal(number)
            process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert types_of(url)[-3:] == ["compaction/request", "compaction/retry", "compaction/end"]


def test_no_store_is_made_for_a_session_that_is_not_there(run: Run, tmp_path: Path) -> None:
    outcome = run("compact", "session-1", "--store", str(tmp_path / "none.sqlite"))

    assert outcome.status == 1
    assert not (tmp_path / "none.sqlite").exists()


def test_a_wrong_setting_of_the_plugin_is_named(run: Run, tmp_path: Path, url: str) -> None:
    add(scripted(tmp_path), "[plugin.compaction]\ntreshold = 0.5\n")

    outcome = run("compact", "session-1", "--store", url)

    assert outcome.status == 1
    assert "plugin 'compaction' has no setting 'treshold'; it has threshold" in outcome.err


def test_a_shipped_recording_is_replayed(run: Run) -> None:
    outcome = run("replay", "offload-and-retry")

    assert outcome.status == 0
    assert outcome.out == "offload-and-retry: 18 events, 3 requests: as recorded\n"


def test_a_replay_needs_no_store_and_no_key(tmp_path: Path) -> None:
    outcome = run_process(
        "replay", "plain-turn", "--json", env={"XDG_DATA_HOME": str(tmp_path / "d")}
    )

    assert json.loads(outcome.out) == {
        "recording": "plain-turn",
        "equal": True,
        "session": "session-1",
        "events": 15,
        "requests": 2,
        "differences": [],
    }
    assert not (tmp_path / "d").exists()


def test_a_replayed_session_may_be_kept(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'kept.sqlite'}"

    run("replay", "tools", "--store", url)

    assert len(types_of(url)) == 21


def test_recordings_are_listed(run: Run) -> None:
    outcome = run("replay", "--list", "--json")

    names = [each["name"] for each in json.loads(outcome.out)["recordings"]]
    assert len(names) == 9
    assert "crash-and-resume" in names


def test_a_difference_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    run("run", "hello", "--record", "mine.jsonl", "--store", str(tmp_path / "x.sqlite"))
    path = tmp_path / "mine.jsonl"
    path.write_text(path.read_text().replace('"{{message-2}}"', '"{{message-9}}"'))

    outcome = run("replay", "mine.jsonl")

    assert outcome.status == 1
    assert "NOT AS RECORDED" in outcome.out


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (("nowhere",), 1, "shipped ones are cancellation"),
        ((), 2, "name a recording, or --list them"),
        (("text.txt",), 1, "is no recording: line 1"),
    ],
)
def test_what_cannot_be_replayed_is_told(
    run: Run, tmp_path: Path, words: tuple[str, ...], status: int, reason: str
) -> None:
    (tmp_path / "text.txt").write_text("hello")

    outcome = run("replay", *words)

    assert outcome.status == status
    assert reason in outcome.err
