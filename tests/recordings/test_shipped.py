"""The shipped recordings: each is played through the shipped composition and compared (R353 to R356)."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from everfold.agent.requests import rebuild_request
from everfold.host.opening import open_sessions
from everfold.profiles.replaying import profile_for, replay_recording
from everfold.recordings.files import read_recording, shipped_names, text_of
from everfold.recordings.normalising import filled, filled_in
from everfold.recordings.recording import Recording
from everfold.recordings.replaying import Replay
from everfold.session.frozen import json_equal
from everfold.store.urls import open_store
from tests.projections.kit import hosted
from tests.recordings.making import SCENES

NAMES = sorted(SCENES)


def played(recording: Recording, store: str = "sqlite://") -> Replay:
    return asyncio.run(asyncio.wait_for(replay_recording(recording, store=store), 60))


def types(recording: Recording) -> list[str]:
    return [str(event["type"]) for event in recording.events]


def data(recording: Recording, type_: str) -> list[Any]:
    return [event["data"] for event in recording.events if event["type"] == type_]


def test_every_scene_is_shipped() -> None:
    assert shipped_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_gives_the_recorded_events_and_requests(name: str) -> None:
    """R353, R356."""
    recording = read_recording(name)

    replay = played(recording)

    assert replay.differences == ()
    assert replay.events == len(recording.events) > 0
    assert replay.requests == len(recording.exchanges) > 0


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_request_is_rebuilt_from_the_recorded_log(name: str) -> None:
    recording = read_recording(name)

    with open_store("sqlite://") as store:
        sessions = hosted(store, filled(recording)).sessions
        rebuilt = [rebuild_request(sessions, "s", each.seq) for each in recording.exchanges]

    for request, exchange in zip(rebuilt, recording.exchanges, strict=True):
        recorded = [filled_in(message, recording) for message in exchange.messages]
        assert json_equal(list(request.messages), recorded)
        assert json_equal(request.header, filled_in(exchange.header, recording))


def test_a_request_for_a_summary_is_recorded_beside_the_event_that_tells_of_it() -> None:
    expected = {"offload-inside-summary": 2, "overflow-compaction": 1}

    for name in NAMES:
        recording = read_recording(name)
        at = [types(recording)[exchange.seq] for exchange in recording.exchanges]
        assert at.count("compaction/request") == expected.get(name, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_plays_on_a_stored_session_too(name: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'kept.db'}"

    replay = played(read_recording(name), url)

    with open_sessions(url, read_only=True, create=False) as sessions:
        kept = sessions.load(replay.session_id)
    assert replay.is_equal
    assert kept.next_seq == replay.events


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_holds_no_key_and_no_place(name: str) -> None:
    """I4."""
    text = text_of(read_recording(name))

    assert re.findall(r"sk-test|127\.0\.0\.1|Bearer|[Aa]uthorization|/tmp|/home|/root", text) == []


def test_three_oldest_of_six_equal_attachments_are_omitted_r354() -> None:
    recording = read_recording("offload-and-retry")

    images = [block for block in recording.acts[0].content if block["type"] == "image"]
    refused = recording.exchanges[0].refused
    assert len({image["attachment"]["attachmentId"] for image in images}) == 1
    assert len(images) == 6
    assert refused is not None
    assert (refused.code, refused.offload_images) == ("IMAGE_OFFLOAD_REQUIRED", 3)
    assert data(recording, "image/offload") == [
        {"targets": [{"seq": 3, "imageIndexes": [0, 1, 2]}]}
    ]


def test_the_recorded_order_is_attempt_omission_series_answer_r270() -> None:
    recording = read_recording("offload-and-retry")

    start = types(recording).index("assistant/attempt")

    assert types(recording)[start : start + 4] == [
        "assistant/attempt",
        "image/offload",
        "request/header",
        "assistant/message",
    ]
    assert data(recording, "request/header")[1]["reason"] == "series"


def test_an_omission_stands_inside_a_compaction_bracket_r355() -> None:
    recording = read_recording("offload-inside-summary")

    known = types(recording)
    begin, end = known.index("compaction/start"), known.index("compaction/end")

    between = ["compaction/request", "image/offload", "compaction/request"]
    assert known[begin + 1 : begin + 4] == between
    assert "error" not in recording.events[end]["data"]
    later = [
        event["data"]["reason"] for event in recording.events[end:] if "header" in event["type"]
    ]
    assert later == ["series"]


def test_an_upload_that_fails_makes_images_travel_inline_r253() -> None:
    recording = read_recording("inline-fallback")

    _, inline, by_reference = (exchange.body for exchange in recording.exchanges)

    assert "data:image/png;base64," in str(inline)
    assert "file_id" not in str(inline)
    assert str(by_reference).count("file_id") == 2


def test_a_cancelled_answer_keeps_what_was_delivered() -> None:
    recording = read_recording("cancellation")

    first = data(recording, "assistant/message")[0]

    assert first["interrupted"] is True
    assert first["message"]["content"] == [{"type": "text", "text": "Once upon a time"}]
    assert [end["reason"]["kind"] for end in data(recording, "turn/end")] == [
        "aborted",
        "aborted",
        "completed",
    ]


def test_a_call_of_unknown_outcome_is_not_repeated_after_a_crash() -> None:
    recording = read_recording("crash-and-resume")

    assert types(recording).count("tool/call") == 1
    assert data(recording, "tool/result")[0]["error"]["code"] == "TOOL_OUTCOME_UNKNOWN"


def test_a_changed_answer_is_found() -> None:
    recording = read_recording("plain-turn")
    stream = recording.exchanges[0].stream
    assert stream is not None
    text = next(record for record in stream if record["type"] == "text-chunks")
    text["texts"][0] += "!"

    replay = played(recording)

    assert not replay.is_equal
    assert replay.differences[0].startswith("event 6.data.")


def test_a_missing_request_is_found() -> None:
    recording = read_recording("plain-turn")
    del recording.exchanges[1]

    replay = played(recording)

    assert [each for each in replay.differences if "turn/end" in each or "event" in each] != []


def test_a_replay_runs_with_the_recorded_plugins_alone() -> None:
    recording = read_recording("offload-and-retry")
    del recording.plugins["image-offload"]

    replay = played(recording)

    assert profile_for(recording).plugins == tuple(recording.plugins)
    assert replay.differences[0] == "event 7: recorded image/offload, played step/end"
