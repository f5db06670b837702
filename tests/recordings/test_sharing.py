"""A recording's file: each request is read as it was sent, and what an earlier one held is written once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.profiles.replaying import replay_recording
from everfold.recordings.errors import RecordingError
from everfold.recordings.files import parsed, text_of
from everfold.recordings.recording import Exchange, Recording
from everfold.session.frozen import Json
from tests.providers.answers import Answer
from tests.providers.strict_fake import strict_fake
from tests.recordings.taping import table, taping

WORDS = "All the boats that came in on the tide were blue. " * 20

elements: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"role": "user", "content": "a"},
        {"content": "a", "role": "user"},
        {"role": "assistant", "content": "b", "n": 1},
        {"role": "assistant", "content": "b", "n": 1.5},
        {"role": "assistant", "content": "b", "n": True},
        {"{{same}}": [0, 0]},
        [0, 1],
        "{{same}}",
        7,
        None,
    ]
)
lists = st.lists(elements, max_size=8)
bodies = st.none() | st.fixed_dictionaries(
    {"model": st.just("m")},
    optional={"messages": lists, "input": lists, "tools": lists, "stop": st.just("x")},
)
exchanges = st.lists(st.builds(Exchange, st.just("p"), st.just(1), st.just({}), lists, bodies))


def told(recording: Recording) -> list[bytes]:
    """Return the exchanges as JSON, key order and all."""
    return [orjson.dumps(exchange.to_json()) for exchange in recording.exchanges]


@given(exchanges)
def test_every_request_is_read_as_it_was_written(known: list[Exchange]) -> None:
    recording = Recording(exchanges=known)

    read = parsed(text_of(recording), "x")

    assert told(read) == told(recording)


def conversation(*numbers: int, marked: bool = False) -> Exchange:
    """Return a request of messages; the last one is marked, as for a cache."""
    messages: list[dict[str, Json]] = [{"role": "user", "content": f"m{n}"} for n in numbers]
    if marked:
        messages[-1]["mark"] = True
    return Exchange("p", 1, {}, messages, {"model": "m", "messages": messages, "stream": True})


def lines(*known: Exchange) -> list[dict[str, Any]]:
    """Return the lines of exchanges in a file."""
    text = text_of(Recording(exchanges=list(known)))
    return [orjson.loads(line) for line in text.splitlines()][1:]


def test_a_request_refers_to_the_earlier_one_for_what_that_holds() -> None:
    _, second = lines(conversation(1, 2), conversation(1, 2, 3))

    new = [{"{{same}}": [0, 1]}, {"role": "user", "content": "m3"}]
    assert second["like"] == 0
    assert second["request"]["messages"] == new
    assert second["body"] == {"model": "m", "messages": new, "stream": True}


def test_a_mark_that_moves_costs_one_message() -> None:
    _, second, third = lines(
        conversation(1, 2, marked=True),
        conversation(1, 2, 3, marked=True),
        conversation(1, 2, 3, 4, marked=True),
    )

    assert second["body"]["messages"][0] == {"{{same}}": [0, 0]}
    assert [each.get("content") for each in third["body"]["messages"]] == [None, "m3", "m4"]


def test_a_summary_in_between_does_not_make_the_next_request_whole() -> None:
    third = lines(conversation(1, 2, 3, 4, 5, 6), conversation(1, 2, 3, 9), conversation(9, 5, 6))[
        2
    ]

    assert third["like"] == 0
    assert third["request"]["messages"] == [
        {"role": "user", "content": "m9"},
        {"{{same}}": [4, 5]},
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"like": 1}, "it is like exchange 1, and there are 1 before it"),
        ({"like": -1}, "it is like exchange -1"),
        ({"like": True}, "it is like exchange True"),
        ({"request": {"header": {}, "messages": [{"{{same}}": [0, 2]}]}}, "list of 2"),
        ({"request": {"header": {}, "messages": [{"{{same}}": [1, 0]}]}}, "are no places"),
        ({"request": {"header": {}, "messages": [{"{{same}}": 0}]}}, "are no places"),
        ({"body": {"input": [{"{{same}}": [0, 0]}]}}, "list of 0"),
    ],
)
def test_a_reference_to_nothing_is_refused_with_its_line(
    change: Mapping[str, Json], reason: str
) -> None:
    text = text_of(Recording(exchanges=[conversation(1, 2), conversation(1, 2, 3)]))
    head, first, second = text.splitlines()
    broken = orjson.dumps({**orjson.loads(second), **change}).decode()

    with pytest.raises(RecordingError, match="line 3") as caught:
        parsed("\n".join([head, first, broken]), "x")

    assert reason in str(caught.value)


@pytest.mark.parametrize(("adapter", "turns"), [("openai-chat", 200), ("anthropic", 60)])
def test_the_file_of_a_session_grows_with_its_turns_and_not_with_their_square(
    adapter: str, turns: int
) -> None:
    async def scene() -> tuple[Recording, Recording]:
        url = fake.base_url if adapter == "openai-chat" else fake.url
        async with taping(table(fake, route={"adapter": adapter, "base_url": url})) as tape:
            for number in range(turns // 2):
                await tape.ask(f"{number} {WORDS}")
            half = tape.recording()
            for number in range(turns // 2, turns):
                await tape.ask(f"{number} {WORDS}")
            return half, tape.recording()

    with strict_fake() as fake:
        fake.default = Answer(WORDS, piece=64)

        half, whole = asyncio.run(scene())

    half_text, text = text_of(half), text_of(whole)
    assert len(whole.exchanges) == turns
    assert len(text) < 2.1 * len(half_text)
    assert len(text) < 8 * turns * 2 * len(WORDS)
    read = parsed(text, "x")
    assert told(read) == told(whole)


def test_a_long_recording_is_played_from_its_file() -> None:
    async def scene() -> Recording:
        async with taping(table()) as tape:
            for number in range(20):
                await tape.ask(f"question {number}")
            return tape.recording()

    recording = parsed(text_of(asyncio.run(scene())), "x")

    replay = asyncio.run(replay_recording(recording))

    assert replay.differences == ()
    assert replay.requests == 20
