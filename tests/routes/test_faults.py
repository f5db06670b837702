"""Every way in which a request can fail, on every wire, through the real SDK."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import BlockStart, TextDelta
from everfold.llm.failure import FailureCode, LlmError
from tests.providers.answers import EMPTY, Answer, Refuse, ToolUse, huge
from tests.providers.pictures import img
from tests.providers.refusing import error
from tests.providers.strict_fake import StrictFake, strict_fake
from tests.routes.kit import LOOK, picture, request, user
from tests.routes.talk import Talk, Talking, blocks
from tests.routes.wires import KEY, WIRES

MakeTalk = Callable[..., Talk]
HI = request(user("hi"))


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


def test_a_rate_limit_says_how_long_to_wait(fake: StrictFake, make_talk: MakeTalk) -> None:
    refused = error("openai", 429, "slow down")
    fake.will(replace(refused, headers={**refused.headers, "Retry-After": "7"}))

    failure = make_talk().failure(HI)

    assert (failure.code, failure.status) == (FailureCode.RATE_LIMIT, 429)
    assert failure.provider_retry_after_ms == 7000
    assert failure.request_id == "req_refused"


def test_a_request_is_sent_once_whatever_the_sdk_would_retry(
    fake: StrictFake, make_talk: MakeTalk
) -> None:
    fake.will(*[Refuse(500)] * 3)

    failure = make_talk().failure(HI)

    assert failure.code == FailureCode.SERVER
    assert len(fake.calls) == 1


def test_a_storm_of_server_errors_ends_in_an_answer(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Refuse(500), Refuse(502, b"<html>bad gateway</html>"), Refuse(503))
    talk = make_talk()

    failures = [talk.failure(HI) for _ in range(3)]

    assert [failure.is_retryable for failure in failures] == [True] * 3
    assert blocks(talk.ask(HI)) == [{"type": "text", "text": "Seen."}]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_repeated_in_the_failure_i4(
    fake: StrictFake, make_talk: MakeTalk, status: int
) -> None:
    fake.will(error("openai", status, f"Incorrect API key provided: {KEY}"))

    failure = make_talk().failure(HI)

    assert failure.code == FailureCode.AUTH
    assert KEY not in str(failure)


def test_a_slow_first_byte_is_a_first_chunk_timeout(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Answer(first_byte_s=30))

    failure = make_talk(first_chunk_s=0.2).failure(HI)

    assert failure.code == FailureCode.FIRST_CHUNK_TIMEOUT
    assert "0.2 s" in failure.message
    assert fake.disconnected.wait(10)


def test_a_pause_amid_the_answer_is_a_timeout(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Answer("abcdefgh", between_s=30))

    assert make_talk(idle_s=0.2).failure(HI).code == FailureCode.TIMEOUT


def test_408_is_a_timeout(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Refuse(408))

    assert make_talk().failure(HI).code == FailureCode.TIMEOUT


@pytest.mark.parametrize("cut", ["mid-frame", "before-finish"])
def test_a_cut_stream_is_a_transport_failure_after_what_was_delivered(
    fake: StrictFake, make_talk: MakeTalk, cut: Any
) -> None:
    fake.will(Answer("abcdefgh" * 4, cut=cut))
    talk = make_talk()
    delivered: list[object] = []

    async def read() -> None:
        prepared = await talk.route.prepare(HI)
        talk.dispatched.append(prepared)
        async for chunk in talk.route.stream(prepared):
            delivered.append(chunk)

    with pytest.raises(LlmError) as caught:
        asyncio.run(read())

    assert caught.value.failure.code == FailureCode.TRANSPORT
    assert TextDelta(0, "abcd") in delivered


def test_a_web_page_in_place_of_an_answer_is_said_to_be_one(
    fake: StrictFake, make_talk: MakeTalk
) -> None:
    fake.will(Refuse(200, b"<html>Please log in</html>", {"Content-Type": "text/html"}))

    failure = make_talk().failure(HI)

    assert failure.code == FailureCode.MALFORMED_RESPONSE
    assert "a web page came in place of an answer; check base_url" in failure.message


def test_a_redirect_takes_no_conversation_to_another_server(
    fake: StrictFake, make_talk: MakeTalk
) -> None:
    with strict_fake() as other:
        fake.will(Refuse(307, headers={"Location": f"{other.url}/v1/chat/completions"}))

        failure = make_talk().failure(HI)

        assert (failure.code, failure.status) == (FailureCode.INVALID_REQUEST, 307)
        assert "set base_url to the address that is meant" in failure.message
        assert other.calls == []


def test_a_refused_connection_is_a_transport_failure(
    versions: RequestVersions, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    nobody = StrictFake(url=f"http://127.0.0.1:{port}")

    for make in WIRES.values():
        failure = Talk(make(nobody, versions, tmp_path)).failure(HI)
        assert failure.code == FailureCode.TRANSPORT
        assert failure.message.startswith(f"the connection to 127.0.0.1:{port} failed: ")


def test_a_malformed_chunk_is_named(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Answer("abcdefgh" * 4, malformed=True))

    assert make_talk().failure(HI).code == FailureCode.MALFORMED_RESPONSE


def test_an_empty_answer_is_a_failure_a11(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(EMPTY, Answer(text=""))
    talk = make_talk()

    assert talk.failure(HI).code == FailureCode.EMPTY_RESPONSE
    assert talk.failure(HI).code == FailureCode.EMPTY_RESPONSE


def test_a_plain_json_answer_to_a_streaming_request_is_empty(
    fake: StrictFake, make_talk: MakeTalk
) -> None:
    fake.will(Answer(streamed=False))

    assert make_talk().failure(HI).code == FailureCode.EMPTY_RESPONSE


def test_an_error_amid_the_stream_is_read(fake: StrictFake, make_talk: MakeTalk) -> None:
    detail = {"message": "busy, try later", "code": "rate_limit_exceeded"}
    fake.will(Answer("abcdefgh", error={"type": "error", "error": detail}))

    failure = make_talk().failure(HI)

    assert failure.code == FailureCode.RATE_LIMIT
    assert "busy, try later" in failure.message


def test_a_huge_answer_arrives_whole(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(huge(8 * 2**20))

    (block,) = blocks(make_talk().ask(HI))

    assert len(block["text"]) == 8 * 2**20
    assert block["text"].startswith("0123456789abcdef")


def test_wrong_json_in_tool_arguments_is_handed_on_as_written(
    fake: StrictFake, make_talk: MakeTalk
) -> None:
    fake.will(Answer("", calls=(ToolUse("c1", "look", '{"at": 1,,'),), finish="tool-calls"))

    (block,) = blocks(make_talk().ask(request(user("hi"), tools=[LOOK])))

    assert block["arguments"] == '{"at": 1,,'


def test_closing_the_iterator_ends_the_http_request(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Answer("abcdefgh" * 100, between_s=0.05))

    async def leave() -> tuple[object, bool]:
        first = await make_talk().left_after_one(HI)
        return first, await asyncio.to_thread(fake.disconnected.wait, 10)

    assert asyncio.run(leave()) == (BlockStart(0, "text"), True)


def test_cancelling_the_task_ends_the_http_request(fake: StrictFake, make_talk: MakeTalk) -> None:
    fake.will(Answer(first_byte_s=30))
    talk = make_talk()

    async def cancel_when_asked() -> None:
        task = asyncio.create_task(talk.asking(HI))
        while not fake.calls:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_when_asked())

    assert fake.disconnected.wait(10)


def test_several_requests_at_once_do_not_mix(fake: StrictFake, make_talk: MakeTalk) -> None:
    talk = make_talk()

    async def ask_all() -> list[list[Any]]:
        return await asyncio.gather(*[talk.asking(request(user(f"n{n}"))) for n in range(8)])

    answers = asyncio.run(ask_all())

    assert [blocks(chunks) for chunks in answers] == [[{"type": "text", "text": "Seen."}]] * 8
    assert len(fake.accepted) == 8


def test_the_third_silent_failure_of_a_big_request_asks_for_fewer_pictures_a11(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    talk = make_talk(limits={"silent_failure_bytes": 50_000})
    big = request(user(*[picture(store, img(20_000, shade=n)) for n in range(4)]))
    fake.will(Refuse(500), EMPTY, Refuse(502))

    failures = [talk.failure(big) for _ in range(3)]

    assert [failure.code for failure in failures] == [
        FailureCode.SERVER,
        FailureCode.EMPTY_RESPONSE,
        FailureCode.IMAGE_OFFLOAD_REQUIRED,
    ]
    assert failures[2].offload_images == 2
