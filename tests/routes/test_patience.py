"""How long an answer is waited for: signs of life keep it alive, and do not keep it alive for ever."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import Chunk, TextDelta
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from tests.providers.answers import Answer
from tests.providers.strict_fake import StrictFake
from tests.routes.kit import request, user
from tests.routes.talk import Talk, Talking, blocks
from tests.routes.wires import WIRES

MakeTalk = Callable[..., Talk]
HI = request(user("hi"))
FILLERS = ("comment", "empty")
LONG_S = 60.0


@pytest.fixture(params=sorted(WIRES))
def make_talk(
    request: pytest.FixtureRequest,
    fake: StrictFake,
    versions: RequestVersions,
    tmp_path: Path,
    talking: Talking,
) -> MakeTalk:
    def make(**more: Any) -> Talk:
        return talking(WIRES[request.param](fake, versions, tmp_path, **more))

    return make


def delivered(talk: Talk) -> tuple[list[Chunk], LlmFailure]:
    """Return what came before a request failed, and how it failed."""
    chunks: list[Chunk] = []

    async def read() -> None:
        prepared = await talk.route.prepare(HI)
        talk.dispatched.append(prepared)
        async for chunk in talk.route.stream(prepared):
            chunks.append(chunk)

    with pytest.raises(LlmError) as caught:
        asyncio.run(asyncio.wait_for(read(), LONG_S))
    return chunks, caught.value.failure


@pytest.mark.parametrize("filler", FILLERS)
def test_an_answer_that_goes_on_saying_nothing_is_a_timeout_after_what_was_delivered(
    fake: StrictFake, make_talk: MakeTalk, filler: Any
) -> None:
    fake.will(Answer("abcdefgh" * 4, filler=filler))

    chunks, failure = delivered(make_talk(content_s=2.0))

    assert failure.code == FailureCode.TIMEOUT
    assert "nothing but signs of life came within 2 s" in failure.message
    assert TextDelta(0, "abcd") in chunks
    assert all(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert fake.disconnected.wait(LONG_S)


@pytest.mark.parametrize("filler", FILLERS)
def test_a_model_that_gives_signs_of_life_alone_for_a_while_is_not_cut_off(
    fake: StrictFake, make_talk: MakeTalk, filler: Any
) -> None:
    fake.will(Answer("abcdefgh", filler=filler, fillers=40))

    chunks = make_talk(idle_s=1.5, content_s=LONG_S).ask(HI)

    assert blocks(chunks) == [{"type": "text", "text": "abcdefgh"}]


def test_reasoning_is_something_that_an_answer_says(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Answer("so", reasoning="because " * 12, piece=2, between_s=0.05))

    chunks = make_talk(content_s=1.5).ask(HI)

    assert blocks(chunks)[-1] == {"type": "text", "text": "so"}


def test_time_that_the_reader_of_an_answer_takes_for_itself_is_not_waiting(
    fake: StrictFake, make_talk: MakeTalk
) -> None:
    fake.will(Answer("abcdefgh"))
    talk = make_talk(idle_s=1.0, content_s=1.0)
    chunks: list[Chunk] = []

    async def read_slowly() -> None:
        prepared = await talk.route.prepare(HI)
        talk.dispatched.append(prepared)
        async for chunk in talk.route.stream(prepared):
            chunks.append(chunk)
            await asyncio.sleep(1.2 if len(chunks) < 3 else 0)

    asyncio.run(read_slowly())

    assert blocks(chunks) == [{"type": "text", "text": "abcdefgh"}]
