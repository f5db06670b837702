"""Failures of the Messages API in its own words, and the SDK behind the route."""

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import BlockEnd, BlockStart, Chunk, Finish, TextDelta
from everfold.llm.failure import FailureCode
from everfold.llm.route import Prepared
from everfold.routes.anthropic_messages import AnthropicMessagesRoute, AnthropicSettings
from tests.providers.answers import Answer, Refuse
from tests.providers.pictures import img
from tests.providers.refusing import error
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import KEY, claude, events, raw, refused_amid
from tests.routes.kit import picture, request, user
from tests.routes.talk import Talk, Talking, blocks

HI = request(user("hi"))
SO = {"type": "text", "text": "so"}
OFFLOAD = FailureCode.IMAGE_OFFLOAD_REQUIRED


@pytest.fixture
def talk(fake: StrictFake, versions: RequestVersions, talking: Talking) -> Talk:
    return claude(fake, versions, talking)


STATUSES = [
    (400, "temperature: must be at most 1", FailureCode.INVALID_REQUEST),
    (401, "invalid x-api-key", FailureCode.AUTH),
    (403, "Your API key does not have permission", FailureCode.AUTH),
    (404, "model: claude-9", FailureCode.INVALID_REQUEST),
    (408, "timed out", FailureCode.TIMEOUT),
    (413, "Request exceeds the maximum size", FailureCode.CONTEXT_WINDOW_EXCEEDED),
    (429, "This request would exceed your rate limit", FailureCode.RATE_LIMIT),
    (500, "Internal server error", FailureCode.SERVER),
    (503, "unavailable", FailureCode.SERVER),
    (504, "timed out", FailureCode.TIMEOUT),
    (529, "Overloaded", FailureCode.SERVER),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", "CONTEXT_WINDOW_EXCEEDED"),
    (400, "input length and `max_tokens` exceed context limit: 9 + 9 > 10", "CONTEXT_WINDOW_EXCEEDED"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said", "code"), STATUSES)
def test_each_status_has_its_code(
    fake: StrictFake, talk: Talk, status: int, said: str, code: str
) -> None:
    fake.will(error("anthropic", status, said))

    failure = talk.failure(HI)

    assert (failure.code, failure.status) == (code, status)
    assert said in failure.message
    assert failure.request_id == "req_refused"


def test_a_rate_limit_says_how_long_to_wait(fake: StrictFake, talk: Talk) -> None:
    refused = error("anthropic", 429, "slow down")
    fake.will(replace(refused, headers={**refused.headers, "retry-after": "7"}))

    assert talk.failure(HI).provider_retry_after_ms == 7000


SAID = [
    (413, "Request exceeds the maximum size", 2),
    (400, "messages: too much media: 0 document pages + 4 images > 3", 1),
    (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 9 bytes > 5 bytes", 4),
    (400, "messages.0.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels", 2),
    (400, "Could not process image", 2),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said", "omitted"), SAID)
def test_wordings_about_pictures_give_a_count(
    fake: StrictFake, talk: Talk, store: FileAttachments, status: int, said: str, omitted: int
) -> None:
    fake.will(error("anthropic", status, said))
    shown = [picture(store, img(40_000, shade=n)) for n in range(4)]

    failure = talk.failure(request(user("see", *shown)))

    assert (failure.code, failure.offload_images) == (OFFLOAD, omitted)


AMID = [
    ("overloaded_error", FailureCode.SERVER),
    ("api_error", FailureCode.SERVER),
    ("rate_limit_error", FailureCode.RATE_LIMIT),
    ("timeout_error", FailureCode.TIMEOUT),
    ("authentication_error", FailureCode.AUTH),
    ("invalid_request_error", FailureCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("kind", "code"), AMID)
def test_an_error_amid_the_stream_has_its_code(
    fake: StrictFake, talk: Talk, kind: str, code: str
) -> None:
    fake.will(refused_amid(kind, "it broke"))

    failure = talk.failure(HI)

    assert failure.code == code
    assert "it broke" in failure.message


BROKEN: list[tuple[str, dict[str, object]]] = [
    ("without a type", {"index": 0}),
    ("without an index", {"type": "content_block_start", "content_block": {"type": "text"}}),
    ("of no block", {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta"}}),
    ("with no text", {"type": "content_block_start", "index": 0, "content_block": {"type": 3}}),
    ("without a delta", {"type": "message_delta"}),
]


@pytest.mark.parametrize("event", [event for _, event in BROKEN], ids=[name for name, _ in BROKEN])
def test_an_event_of_a_wrong_form_is_malformed(
    fake: StrictFake, talk: Talk, event: dict[str, object]
) -> None:
    fake.will(raw(f"data: {str(event).replace(chr(39), chr(34))}\n\n"))

    assert talk.failure(HI).code == FailureCode.MALFORMED_RESPONSE


@pytest.mark.parametrize("text", ["data: {\n\n", "data: [1]\n\n", "event: ping\ndata: 3\n\n"])
def test_an_event_that_is_no_object_is_malformed(fake: StrictFake, talk: Talk, text: str) -> None:
    fake.will(raw(text))

    assert talk.failure(HI).code == FailureCode.MALFORMED_RESPONSE


def test_a_block_that_begins_twice_is_malformed(fake: StrictFake, talk: Talk) -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
    fake.will(events(start, start))

    assert talk.failure(HI).code == FailureCode.MALFORMED_RESPONSE


def test_a_stream_that_just_ends_is_cut_off(fake: StrictFake, talk: Talk) -> None:
    fake.will(events({"type": "content_block_start", "index": 0, "content_block": SO}))

    assert talk.failure(HI).code == FailureCode.TRANSPORT


def test_an_answer_of_empty_text_is_empty_a11(fake: StrictFake, talk: Talk) -> None:
    text = {"type": "text", "text": ""}
    start = {"type": "content_block_start", "index": 0, "content_block": text}
    fake.will(events(start, {"type": "message_stop"}))

    assert talk.failure(HI).code == FailureCode.EMPTY_RESPONSE


def test_pings_add_nothing(fake: StrictFake, talk: Talk) -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": SO}
    stop = {"type": "content_block_stop", "index": 0}
    ping = {"type": "ping"}
    fake.will(events(ping, start, ping, ping, stop, ping, {"type": "message_stop"}))

    assert talk.ask(HI) == [
        BlockStart(0, "text"),
        TextDelta(0, "so"),
        BlockEnd(0, SO),
        Finish("stop"),
    ]


def test_the_key_is_in_the_header_alone(fake: StrictFake, talk: Talk) -> None:
    fake.will(error("anthropic", 400, f"Bad key {KEY} and sk-ant-api03-abcdefgh"))

    failure = talk.failure(HI)

    assert KEY not in str(failure)
    assert "sk-ant" not in failure.message
    assert any(KEY in value for value in fake.last.headers.values())
    assert KEY.encode() not in fake.last.raw


def test_headers_of_the_settings_are_sent(
    fake: StrictFake, versions: RequestVersions, talking: Talking
) -> None:
    claude(fake, versions, talking, headers={"anthropic-beta": "context-1m"}).ask(HI)

    assert fake.last.headers["anthropic-beta"] == "context-1m"
    assert fake.last.headers["content-type"] == "application/json"


def test_a_base_url_may_end_in_the_version(
    fake: StrictFake, versions: RequestVersions, talking: Talking
) -> None:
    claude(fake, versions, talking, base_url=fake.base_url).ask(HI)

    assert fake.last.path == "/v1/messages"


def test_a_request_from_a_recording_can_be_sent(fake: StrictFake, talk: Talk) -> None:
    async def sent_again() -> list[object]:
        prepared = await talk.route.prepare(HI)
        talk.dispatched.append(prepared)
        return [chunk async for chunk in talk.route.stream(Prepared(prepared.body))]

    chunks = asyncio.run(sent_again())

    assert BlockStart(0, "text") in chunks
    assert len(fake.accepted) == 1


def test_closing_the_iterator_ends_the_http_request(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer("abcdefgh" * 100, between_s=0.05))

    first = asyncio.run(talk.left_after_one(HI))

    assert first == BlockStart(0, "text")
    assert fake.disconnected.wait(10)


def test_several_requests_at_once_do_not_mix(fake: StrictFake, talk: Talk) -> None:
    fake.default = Answer("abcdefgh", piece=1)

    async def ask_all() -> list[list[Chunk]]:
        asked = [talk.asking(request(user(f"hi {n}"))) for n in range(8)]
        return await asyncio.gather(*asked)

    answers = asyncio.run(ask_all())

    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)


def test_a_route_without_a_key_says_what_to_set(
    versions: RequestVersions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    talk = Talk(AnthropicMessagesRoute(AnthropicSettings(), versions))

    failure = talk.failure(HI)

    assert failure.code == FailureCode.AUTH
    assert "ANTHROPIC_API_KEY" in failure.message


def test_the_sdk_is_imported_when_a_route_is_made() -> None:
    code = "import sys, everfold.routes.anthropic_messages; print('anthropic' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_a_missing_sdk_names_the_extra(
    versions: RequestVersions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)

    with pytest.raises(ImportError, match=r"pip install 'everfold\[anthropic\]'"):
        AnthropicMessagesRoute(AnthropicSettings(api_key="k"), versions)  # type: ignore[arg-type]  # pydantic makes a secret of it


def test_a_storm_of_overloads_ends_in_an_answer(fake: StrictFake, talk: Talk) -> None:
    fake.will(*[error("anthropic", 529, "Overloaded")] * 3)

    assert [talk.failure(HI).is_retryable for _ in range(3)] == [True] * 3
    assert blocks(talk.ask(HI)) == [{"type": "text", "text": "Seen."}]
    assert len(fake.calls) == 4


def test_large_requests_that_fail_silently_give_up_pictures_a11(
    fake: StrictFake, versions: RequestVersions, talking: Talking, store: FileAttachments
) -> None:
    talk = claude(fake, versions, talking, limits={"silent_failure_bytes": 1_000_000})
    asked = request(user("see", *[picture(store, img(400_000, shade=n)) for n in range(4)]))
    fake.will(*[Refuse(502)] * 3)

    codes = [talk.failure(asked).code for _ in range(3)]

    assert codes == [FailureCode.SERVER, FailureCode.SERVER, OFFLOAD]
