"""StrictFake itself: what the other tests rely on."""

import base64
import http.client
import io
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from PIL import Image

from tests.providers.answers import EMPTY, Answer, Refuse, ToolUse
from tests.providers.pictures import corrupt, img
from tests.providers.refusing import Rejection
from tests.providers.rules import Rules
from tests.providers.strict_fake import StrictFake, strict_fake

Json = dict[str, object]


@pytest.fixture
def fake() -> Iterator[StrictFake]:
    with strict_fake(Rules()) as running:
        yield running


def post(fake: StrictFake, body: object, path: str = "/v1/messages") -> tuple[int, bytes]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(fake.url).netloc, timeout=10)
    connection.request("POST", path, raw, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def image_block(picture: bytes, media_type: str = "image/png") -> Json:
    data = base64.b64encode(picture).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def asks(*content: Json) -> Json:
    return {"model": "m", "messages": [{"role": "user", "content": list(content)}]}


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/webp", "image/gif"])
def test_a_picture_has_exactly_the_bytes_asked_for_and_decodes(kind: str) -> None:
    picture = img(5_000, 30, 20, kind)

    with Image.open(io.BytesIO(picture)) as image:
        image.load()

        assert (len(picture), image.size) == (5_000, (30, 20))


def test_a_corrupt_picture_does_not_decode() -> None:
    picture = corrupt(img(5_000))

    with pytest.raises((OSError, SyntaxError)), Image.open(io.BytesIO(picture)) as image:
        image.load()


def test_each_body_is_kept_as_it_came(fake: StrictFake) -> None:
    raw = b'{"model": "m",  "messages": []}'

    post(fake, raw)

    assert fake.last.raw == raw


def test_an_answer_is_streamed_in_pieces(fake: StrictFake) -> None:
    fake.will(Answer("abcdef", calls=(ToolUse("c1", "look", '{"a":1}'),), piece=3))

    status, body = post(fake, asks({"type": "text", "text": "hi"}))

    assert status == 200
    assert b'"text": "abc"' in body
    assert b'"partial_json": "{\\"a"' in body
    assert body.rstrip().endswith(b'data: {"type": "message_stop"}')


@pytest.mark.parametrize(
    ("style", "status", "said"),
    [
        ("R1", 413, b"Payload Too Large"),
        ("R2", 400, b"5600 bytes > 5000 bytes"),
        ("R3", 400, b"messages.0.content.0.image.source.base64: Invalid image"),
        ("R4", 400, b"Could not process image"),
        ("R6", 500, b"Internal Server Error"),
    ],
)
def test_a_picture_over_the_limit_is_refused_in_each_style(
    fake: StrictFake, style: str, status: int, said: bytes
) -> None:
    fake.rules = Rules(max_image_b64=5_000)
    fake.rejection = Rejection(style)  # type: ignore[arg-type]  # the styles are listed above

    got, body = post(fake, asks(image_block(img(4_200))))

    assert got == status
    assert said in body


def test_style_r5_answers_nothing(fake: StrictFake) -> None:
    fake.rules, fake.rejection = Rules(max_body=10), Rejection("R5")

    status, body = post(fake, asks({"type": "text", "text": "hi"}))

    assert status == 200
    assert b"content_block_start" not in body
    assert fake.default != EMPTY


BROKEN = [
    (Rules(max_body=10), asks({"type": "text", "text": "hi"}), "body"),
    (Rules(max_images=1), asks(image_block(img()), image_block(img())), "count"),
    (Rules(dims=True), asks(image_block(img(width=9000))), "dims"),
    (Rules(dims=True), asks(*[image_block(img(width=2001))] * 21), "dims"),
    (Rules(magic=True), asks(image_block(img(media_type="image/jpeg"))), "type"),
    (Rules(cannot_decode=frozenset([img()])), asks(image_block(img())), "decode"),
    (Rules(nonempty=True), asks({"type": "text", "text": "  "}), "empty"),
    (Rules(nonempty=True), asks(), "empty"),
    (Rules(images=False), asks(image_block(img())), "no-images"),
    (Rules(wellformed=True), b'{"a": NaN}', "json"),
    (Rules(wellformed=True), b'{"a": "\\ud800"}', "json"),
    (Rules(wellformed=True), b'{"a": "\xff"}', "json"),
    (Rules(max_chars=3), asks({"type": "text", "text": "four"}), "window"),
    (Rules(pairing=True), asks({"type": "tool_result", "tool_use_id": "c"}), "pairing"),
    (Rules(idre=True), asks({"type": "tool_result", "tool_use_id": "c.1"}), "id"),
    (Rules(max_id=2), asks({"type": "tool_result", "tool_use_id": "c_1"}), "id"),
    (Rules(nine=True), asks({"type": "tool_result", "tool_use_id": "c_1"}), "id"),
    (Rules(declared=True), asks({"type": "tool_result", "tool_use_id": "c_1"}), "tools"),
    (Rules(signatures=frozenset()), asks({"type": "thinking", "thinking": "x"}), "signature"),
]


@pytest.mark.parametrize(("rules", "body", "kind"), BROKEN)
def test_each_rule_refuses_what_breaks_it(
    fake: StrictFake, rules: Rules, body: object, kind: str
) -> None:
    fake.rules = rules

    status, _ = post(fake, body)

    assert fake.last.violation is not None
    assert (status, fake.last.violation.kind) == (400, kind)


@pytest.mark.parametrize(("rules", "body", "kind"), BROKEN[3:6])
def test_a_rule_that_is_off_refuses_nothing(
    fake: StrictFake, rules: Rules, body: object, kind: str
) -> None:
    post(fake, body)

    assert fake.last.violation is None


def test_twenty_large_pictures_are_no_violation(fake: StrictFake) -> None:
    fake.rules = Rules(dims=True)

    post(fake, asks(*[image_block(img(width=2001))] * 20))

    assert len(fake.accepted) == 1


def test_a_refusal_is_sent_as_it_was_written(fake: StrictFake) -> None:
    fake.will(Refuse(429, b"slow down", {"Retry-After": "7"}))

    assert post(fake, asks()) == (429, b"slow down")
