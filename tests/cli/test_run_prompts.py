"""What `everfold run` takes as a prompt."""

from pathlib import Path

import pytest

from tests.cli.programs import run_process
from tests.cli.talking import scripted, types_of


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path / 'run.sqlite'}"


def test_a_prompt_may_be_piped_in(url: str) -> None:
    outcome = run_process("run", "--store", url, stdin=b"What is\nthis?\n")

    assert (outcome.status, outcome.out) == (0, "You said 'What is\\nthis?'; I see 0 image(s).\n")


def test_calls_of_one_id_are_said_to_be_repaired(url: str, tmp_path: Path) -> None:
    twice = {"calls": [{"id": "c", "name": "no", "arguments": {}}] * 2}
    profile = scripted(tmp_path, twice, {"text": "done"})

    outcome = run_process("run", "go", "--store", url, "--profile", str(profile))

    assert "[repaired: id 'c' made unique]" in outcome.err
    assert "Unicode" not in outcome.err


def test_a_prompt_that_is_not_valid_unicode_is_repaired_and_kept(url: str) -> None:
    outcome = run_process("run", "-", "--store", url, stdin=b"caf\xe9")

    assert outcome.status == 0
    assert "text that is not valid Unicode was repaired" in outcome.err
    assert "content/repaired" in types_of(url)


@pytest.mark.parametrize("stdin", [b"", b" \n"])
def test_an_empty_prompt_is_refused(url: str, stdin: bytes) -> None:
    outcome = run_process("run", "--store", url, stdin=stdin)

    assert outcome.status == 2
    assert "the prompt is empty" in outcome.err
