"""`everfold run`: against a provider on loopback through the real SDKs, and with a scripted model."""

import io
import json
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from everfold.attachments.filesystem import FileAttachments
from tests.cli.conftest import Run
from tests.cli.programs import started
from tests.cli.talking import (
    KEY,
    PATIENCE_S,
    crashed,
    events_of,
    provided,
    scripted,
    turn_ends,
    types_of,
    wait_for,
)
from tests.providers.answers import Answer, Refuse
from tests.providers.pictures import img
from tests.providers.refusing import Rejection
from tests.providers.rules import STRICT
from tests.providers.strict_fake import strict_fake


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAKE_KEY", KEY)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'run.sqlite'}"


def document(out: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(out)
    return value


def test_without_a_profile_and_a_key_a_scripted_model_answers(run: Run, url: str) -> None:
    outcome = run("run", "hello", "--store", url)

    assert outcome.status == 0
    assert outcome.out == "You said 'hello'; I see 0 image(s).\n"
    assert outcome.err == "[session session-1, turn 1: echo of scripted]\n"


@pytest.mark.parametrize("adapter", ["openai-chat", "openai-responses", "anthropic"])
def test_an_answer_of_a_provider_is_streamed_to_standard_output(
    run: Run, tmp_path: Path, url: str, adapter: str
) -> None:
    with strict_fake() as fake:
        provided(tmp_path, fake, adapter)
        fake.will(Answer("The ferry leaves at 14:20."))

        outcome = run("run", "When?", "--store", url)

    assert (outcome.status, outcome.out) == (0, "The ferry leaves at 14:20.\n")
    assert len(fake.calls) == 1
    assert turn_ends(url) == ["completed"]


def test_the_text_comes_while_the_answer_is_under_way(tmp_path: Path, url: str) -> None:
    with strict_fake() as fake:
        provided(tmp_path, fake)
        fake.will(Answer("first words " + "and more " * 200, between_s=0.2))
        with _started("run", "talk", "--store", url) as process:
            assert process.stdout is not None

            read = process.stdout.read(11)
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=PATIENCE_S)

    assert read == b"first words"
    assert process.returncode == 130
    assert len(rest) < 1000
    assert b"the turn ended: aborted" in err
    assert turn_ends(url) == ["aborted"]


def test_json_tells_events_usage_and_finish(run: Run, tmp_path: Path, url: str) -> None:
    with strict_fake() as fake:
        provided(tmp_path, fake)
        fake.will(Answer("At 14:20.", input_tokens=120, output_tokens=7, cached_tokens=100))

        outcome = run("run", "When?", "--store", url, "--json")

    told = document(outcome.out)
    assert (outcome.status, outcome.err) == (0, "")
    assert (told["session"], told["turn"], told["finish"]) == ("session-1", 1, "completed")
    assert told["text"] == "At 14:20."
    assert told["usage"] == {
        "inputTokens": 120,
        "outputTokens": 7,
        "totalTokens": 127,
        "cacheReadTokens": 100,
        "reasoningTokens": 0,
    }
    assert (told["failure"], told["advice"]) == (None, None)
    assert [event["type"] for event in told["events"]] == types_of(url)


def test_an_image_travels_with_the_prompt(run: Run, tmp_path: Path, url: str) -> None:
    (tmp_path / "quay.png").write_bytes(img(300, shade=5))
    with strict_fake() as fake:
        provided(tmp_path, fake)

        outcome = run("run", "What is it?", "--image", "quay.png", "--store", url)

    assert outcome.status == 0
    assert fake.last.seen is not None
    assert [image.media_type for image in fake.last.seen.images] == ["image/png"]
    assert "image" in types_and_blocks(url)


def types_and_blocks(url: str) -> list[str]:
    message = next(event for event in events_of(url) if event.type == "user/message")
    return [block["type"] for block in message.data["content"]]


def test_too_many_images_are_omitted_and_told(run: Run, tmp_path: Path, url: str) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(img(300, shade=number))
    images = [word for number in range(3) for word in ("--image", f"{number}.png")]
    with strict_fake(STRICT, Rejection("R2")) as fake:
        provided(tmp_path, fake, limits={"inline": {"max_images": 2, "count_quantum": 1}})

        outcome = run("run", "Compare.", *images, "--store", url)

    assert (outcome.status, outcome.out) == (0, "Seen.\n")
    assert "1 image is omitted from now on (seq 7)" in outcome.err
    assert types_of(url).count("image/offload") == 1


def test_a_file_that_is_no_image_is_refused_before_anything_is_stored(
    run: Run, tmp_path: Path, url: str
) -> None:
    (tmp_path / "a.png").write_text("not a picture")

    outcome = run("run", "look", "--image", "a.png", "--store", url)

    assert outcome.status == 1
    assert "a.png" in outcome.err
    assert types_of(url) == []


def test_a_refused_image_names_the_option_that_keeps_it_as_it_is(
    run: Run, tmp_path: Path, url: str
) -> None:
    (tmp_path / "a.png").write_text("not a picture")

    outcome = run("run", "look", "--image", "a.png", "--store", url)

    assert "'a.png'" in outcome.err
    assert "here: --file PATH" in outcome.err


def test_a_file_is_stored_verbatim_and_the_model_reads_its_handle(
    run: Run, tmp_path: Path, url: str
) -> None:
    data = b"hour,metres\r\n6,2.5\xff\x00"
    (tmp_path / "tides.csv").write_bytes(data)
    (tmp_path / "quay.png").write_bytes(img(300, shade=5))
    attached = ("--file", "tides.csv", "--file", "quay.png", "--image", "quay.png")
    with strict_fake() as fake:
        provided(tmp_path, fake)

        outcome = run("run", "When?", *attached, "--store", url)

    assert outcome.status == 0
    assert types_and_blocks(url) == ["text", "image", "file", "file"]
    message = next(event for event in events_of(url) if event.type == "user/message")
    reference = message.data["content"][2]["attachment"]
    assert (reference["name"], reference["bytes"]) == ("tides.csv", len(data))
    stored = FileAttachments(tmp_path / "run.attachments").read(reference["attachmentId"])
    assert stored == data
    assert fake.last.seen is not None
    assert f'[File "tides.csv" ({reference["attachmentId"]})' in fake.last.seen.all_text
    assert len(fake.last.seen.images) == 1


def test_a_bad_image_beside_a_file_stores_neither(run: Run, tmp_path: Path, url: str) -> None:
    (tmp_path / "tides.csv").write_text("hour,metres")
    (tmp_path / "a.png").write_text("not a picture")

    outcome = run("run", "x", "--file", "tides.csv", "--image", "a.png", "--store", url)

    assert outcome.status == 1
    assert types_of(url) == []
    assert FileAttachments(tmp_path / "run.attachments").page() == []


def test_a_file_that_is_not_there_is_named(run: Run, url: str) -> None:
    outcome = run("run", "look", "--file", "nowhere.csv", "--store", url, "--json")

    assert outcome.status == 1
    said = document(outcome.err)["error"]["message"]
    assert "the file 'nowhere.csv' cannot be read: No such file" in said


def test_an_image_that_is_not_there_is_named(run: Run, url: str) -> None:
    outcome = run("run", "look", "--image", "nowhere.png", "--store", url, "--json")

    assert outcome.status == 1
    assert "'nowhere.png' cannot be read: No such file" in document(outcome.err)["error"]["message"]


def test_a_turned_photo_tells_what_admission_changed(run: Run, tmp_path: Path, url: str) -> None:
    file = io.BytesIO()
    Image.new("RGB", (3000, 20)).save(file, "PNG")
    (tmp_path / "wide.png").write_bytes(file.getvalue())

    outcome = run("run", "look", "--image", "wide.png", "--store", url)

    assert outcome.status == 0
    assert "[wide.png: scaled from 3000 x 20 to 2000 x 13 pixels]" in outcome.err


def test_a_missing_key_is_named_and_nothing_is_stored(
    run: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    outcome = run("run", "hello", "--profile", "openai", "--store", url, "--json")

    error = document(outcome.err)["error"]
    assert (outcome.status, error["code"]) == (1, "missing-key")
    assert "set the environment variable OPENAI_API_KEY" in error["message"]
    assert types_of(url) == []


def test_a_refused_key_is_told_without_the_key(run: Run, tmp_path: Path, url: str) -> None:
    """I4."""
    with strict_fake() as fake:
        provided(tmp_path, fake)
        fake.will(Refuse(401, f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode()))

        outcome = run("run", "hello", "--store", url, "--json")

    told = document(outcome.out)
    assert outcome.status == 1
    assert (told["finish"], told["failure"]["code"]) == ("error", "AUTH")
    assert told["advice"] == "check the key of this route"
    assert fake.last.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in outcome.out + outcome.err
    assert KEY.encode() not in (tmp_path / "run.sqlite").read_bytes()


def test_a_retry_is_told(run: Run, tmp_path: Path, url: str) -> None:
    with strict_fake() as fake:
        provided(tmp_path, fake)
        fake.will(Refuse(500, b"oops"), Answer("Now."))

        outcome = run("run", "hello", "--store", url)

    assert (outcome.status, outcome.out) == (0, "Now.\n")
    assert "[no answer: SERVER: " in outcome.err
    assert "[asking again in 0.0 s, 1 of 2]" in outcome.err


def test_an_answer_cut_off_by_its_limit_is_done_in_part(run: Run, tmp_path: Path, url: str) -> None:
    scripted(tmp_path, {"text": "half of", "finish": "max-tokens"})

    outcome = run("run", "hello", "--store", url)

    assert (outcome.status, outcome.out) == (3, "half of\n")
    assert "the turn ended: max-tokens" in outcome.err


def test_a_session_goes_on(run: Run, url: str) -> None:
    run("run", "one", "--store", url, "--id", "mine")

    outcome = run("run", "two", "--store", url, "--session", "mine", "--json")

    assert document(outcome.out)["turn"] == 2
    assert turn_ends(url, "mine") == ["completed", "completed"]


def test_an_unknown_session_is_refused_and_not_made(run: Run, url: str) -> None:
    outcome = run("run", "two", "--store", url, "--session", "typo", "--json")

    assert document(outcome.err)["error"]["code"] == "fork-not-found"
    assert types_of(url, "typo") == []


def test_a_crashed_session_is_taken_over_when_asked(run: Run, url: str) -> None:
    crashed(url)

    refused = run("run", "go on", "--store", url, "--session", "broken")
    taken = run("run", "go on", "--store", url, "--session", "broken", "--resume")

    assert refused.status == 1
    assert "add --resume" in refused.err
    assert taken.status == 0
    assert turn_ends(url, "broken")[0] == "interrupted"


def test_another_route_and_another_model_are_asked(run: Run, tmp_path: Path, url: str) -> None:
    with strict_fake() as fake:
        path = provided(tmp_path, fake)
        text = path.read_text().replace(
            "[retry]", '[routes.echo]\nadapter = "scripted"\nmodel = "e"\n[retry]'
        )
        path.write_text('route = "echo"\n' + text)

        own = run("run", "hello", "--store", url)
        other = run("run", "hello", "--store", url, "--route", "fake", "--model", "fake-2")

    assert own.out == "You said 'hello'; I see 0 image(s).\n"
    assert (other.out, fake.last.body["model"]) == ("Seen.\n", "fake-2")


def test_the_store_of_the_folders_profile_is_used_by_every_command(
    run: Run, tmp_path: Path
) -> None:
    path = scripted(tmp_path)
    path.write_text('store = "own.sqlite"\n' + path.read_text())

    run("run", "hello")
    outcome = run("list", "--json")

    assert (tmp_path / "own.sqlite").is_file()
    assert document(outcome.out)["session"] == "session-1"


def test_the_store_of_a_named_profile_is_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = scripted(tmp_path / "there")
    path.write_text('store = "own.sqlite"\n' + path.read_text())

    outcome = run("run", "hello", "--profile", "there/everfold.toml")

    assert outcome.status == 0
    assert (tmp_path / "there" / "own.sqlite").is_file()
    assert (tmp_path / "there" / "own.attachments").is_dir()


def test_a_reader_that_goes_away_ends_the_turn(tmp_path: Path, url: str) -> None:
    scripted(tmp_path, {"text": "word " * 4000, "pieces": 4000, "pause_s": 0.001})
    with _started("run", "talk", "--store", url) as process:
        assert process.stdout is not None
        process.stdout.read(5)
        process.stdout.close()
        process.stdout = None

        process.wait(PATIENCE_S)

    assert process.returncode == 141
    assert turn_ends(url) == ["aborted"]


def test_an_interrupted_run_still_prints_its_json(tmp_path: Path, url: str) -> None:
    scripted(tmp_path, {"text": "once upon a time", "hangs": True})
    with _started("run", "talk", "--store", url, "--json") as process:
        wait_for(url, "request/header")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert document(out.decode())["finish"] == "aborted"


def _started(*arguments: str) -> "AbstractContextManager[subprocess.Popen[bytes]]":
    return started(*arguments, env={"FAKE_KEY": KEY, "XDG_DATA_HOME": str(Path.cwd())})


def test_no_key_is_in_a_repr(tmp_path: Path) -> None:
    """I4."""
    from everfold.profiles.loading import load_profile
    from everfold.profiles.opening import open_profile

    with strict_fake() as fake:
        provided(tmp_path, fake)
        with open_profile(load_profile()) as host:
            agent = host.agent(host.sessions.create().id)
            shown = repr((host, host.profile, host.route(), agent))

    assert host.secrets == [KEY]
    assert KEY not in shown
