"""Making recordings: the shipped ones can be made again, and what is recorded is what was sent."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from everfold.agent.requests import rebuild_request
from everfold.profiles.replaying import replay_recording
from everfold.recordings.errors import RecordingError
from everfold.recordings.files import parsed, read_recording, text_of, write_recording
from everfold.recordings.normalising import filled_in
from everfold.recordings.recorder import Recorder
from everfold.recordings.recording import Act, Recording
from tests.providers.answers import Answer
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake, strict_fake
from tests.recordings.making import SCENES, made
from tests.recordings.taping import KEY, Tape, table, taping


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


def types(recording: Recording) -> list[Any]:
    return [event["type"] for event in recording.events]


@pytest.mark.parametrize("name", sorted(SCENES))
def test_a_shipped_recording_can_be_made_again(name: str) -> None:
    remade = run(made(name))

    replay = run(replay_recording(parsed(text_of(remade), name)))

    assert replay.differences == ()
    assert types(remade) == types(read_recording(name))


def test_a_body_is_recorded_as_it_was_sent_and_can_be_made_again_from_the_log() -> None:
    with strict_fake() as fake:

        async def scene() -> tuple[Recording, list[Any]]:
            async with taping(table(fake)) as tape:
                await tape.ask("What is it?", img(300, shade=1))
                await tape.ask("Sure?")
                return tape.recording(), await again(tape)

        recording, remade = run(scene())

        sent = [call.body for call in fake.calls]
    recorded = [filled_in(exchange.body, recording) for exchange in recording.exchanges]
    assert recorded == sent == remade


async def again(tape: Tape) -> list[Any]:
    """Return each body as the route makes it of the request that the log gives."""
    host, bodies = tape.host, []
    sessions, session_id = host.sessions, tape.agent.session_id
    for exchange in list(tape.recorder.exchanges):
        request = rebuild_request(sessions, session_id, exchange.seq)
        bodies.append((await host.route().prepare(request)).body)
    return bodies


def test_a_stream_is_recorded_with_its_times() -> None:
    async def scene() -> Recording:
        route = {"replies": [{"text": "one two three four", "pieces": 4, "pause_s": 0.03}]}
        async with taping(table(route=route)) as tape:
            await tape.ask("Count.")
            return tape.recording()

    stream = run(scene()).exchanges[0].stream

    assert stream is not None
    text = next(record for record in stream if record["type"] == "text-chunks")
    assert text["texts"] == ["one t", "wo th", "ree f", "our"]
    assert 0 < text["time0"] < 10_000
    assert all(gap > 0 for gap in text["dt"])


def test_events_are_recorded_without_seqs_times_ids_prompt_and_tools_r353() -> None:
    def tide() -> str:
        return "14:20"

    async def scene() -> Recording:
        async with taping(table(), [tide]) as tape:
            await tape.ask("When?")
            return tape.recording()

    recording = run(scene())

    events = recording.events
    assert all(not {"seq", "time"} & event.keys() for event in events)
    assert "time" not in json.dumps([event["data"].get("stream") for event in events])
    system = next(event for event in events if event["type"] == "system/message")
    asked = next(event for event in events if event["type"] == "user/message")
    assert system["data"]["message"]["id"] == "{{message-1}}"
    assert asked["data"]["id"] == "{{message-2}}"
    assert system["data"]["message"]["content"] == [{"type": "text", "text": "{{prompt}}"}]
    header = next(event for event in events if event["type"] == "request/header")
    assert header["data"]["header"]["tools"] == "{{tools}}"
    assert recording.prompt.startswith("You help people")
    assert recording.tools[0]["name"] == "tide"


def test_paths_and_secrets_do_not_enter_a_recording(tmp_path: Path) -> None:
    """I4."""

    async def scene(fake: StrictFake) -> Recording:
        async with taping(table(fake), store=f"sqlite:///{tmp_path / 'a.db'}") as tape:
            tape.recorder.paths = [str(tmp_path)]
            tape.recorder.secrets = tape.host.secrets
            await tape.ask(f"My key is {KEY}, my folder is {tmp_path}.")
            await tape.ask(f"Say {KEY} again.")
            return tape.recording()

    with strict_fake() as fake:
        fake.will(Answer(f"I read {KEY} in {tmp_path}."), Answer(KEY))

        text = text_of(run(scene(fake)))

    assert KEY not in text
    assert str(tmp_path) not in text
    assert "My key is ***, my folder is {{path}}." in text
    assert "{{same}}" in text


def test_a_key_is_in_no_recording_of_a_refused_request() -> None:
    async def scene(fake: StrictFake) -> str:
        fake.will(*(refused(401, f"bad key {KEY}") for _ in range(2)))
        async with taping(table(fake)) as tape:
            await tape.ask("Hello?")
            return text_of(tape.recording())

    with strict_fake() as fake:
        text = run(scene(fake))
        sent = fake.last.headers["authorization"]

    assert sent == f"Bearer {KEY}"
    assert KEY not in text
    assert '"code": "AUTH"' in text


def refused(status: int, message: str) -> Any:
    from tests.providers.refusing import error

    return error("openai", status, message)


def test_a_decision_of_a_person_is_played_again() -> None:
    async def scene() -> Recording:
        async with taping(table()) as tape:
            await tape.ask("Look.", img(300, shade=1), img(300, shade=2))
            targets = {"targets": [{"seq": 3, "imageIndexes": [1]}]}
            act = Act("append", type="image/offload", data=targets)
            tape.recorder.note(act)
            tape.host.sessions.append(tape.agent.session_id, act.type, act.data)
            await tape.ask("Again?")
            return tape.recording()

    recording = run(scene())

    assert run(replay_recording(recording)).differences == ()
    assert "image/offload" in types(recording)


def test_a_session_with_events_is_not_recorded() -> None:
    async def scene() -> None:
        async with taping(table()) as tape:
            await tape.ask("Hello")
            Recorder().begin(tape.host.sessions, tape.agent.session_id)

    with pytest.raises(RecordingError, match="begins with a new session"):
        run(scene())


def test_a_recording_survives_its_file(tmp_path: Path) -> None:
    recording = read_recording("tools")
    path = tmp_path / "copy.jsonl"

    write_recording(recording, path)

    assert text_of(read_recording(str(path))) == text_of(recording)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("precious")

    with pytest.raises(RecordingError, match="is there already; name another file"):
        write_recording(Recording(), path)

    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("hello", "line 1 is not JSON"),
        ('{"type": "session", "version": 3}', "line 1 cannot be read: it is not the head"),
        ('{"type": "recording", "version": 9}', "version 9, this everfold plays 2"),
        ('{"type": "recording", "version": 1}', "version 1, this everfold plays 2"),
        ('{"type": "recording", "version": 2}', "line 1 has no 'about'"),
        ("[]", "line 1 has another form"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(RecordingError, match=reason):
        parsed(text, "x")


def test_an_unknown_line_is_refused_with_its_number() -> None:
    text = text_of(read_recording("plain-turn")) + '{"type": "surprise"}\n'

    with pytest.raises(RecordingError, match="line 21 cannot be read: type 'surprise' is unk"):
        parsed(text, "x")


def test_a_recording_that_is_not_there_names_the_shipped_ones() -> None:
    with pytest.raises(RecordingError, match="shipped ones are cancellation, crash-and-resume"):
        read_recording("nowhere")
