"""What vendors say when a request is too large, and what follows from it."""

from dataclasses import replace
from typing import Any

import pytest

from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode, LlmFailure
from everfold.routes.counting import SentImage
from everfold.routes.failures import failure_of
from everfold.routes.limits import Limits
from everfold.routes.rejections import Refusal, Sent

LIMITS = Limits("anthropic", {"inline": {"max_bytes": None, "byte_quantum": 1}}).of("m")
OFFLOAD, WINDOW = FailureCode.IMAGE_OFFLOAD_REQUIRED, FailureCode.CONTEXT_WINDOW_EXCEEDED


def sent(
    *encoded: int, edges: dict[int, int] | None = None, fixed: int = 0, other_bytes: int = 100
) -> Sent:
    """Return a request with a picture of each length, one a message; the first `fixed` cannot go."""
    blocks: list[dict[str, Any]] = [{"type": "image"} for _ in encoded]
    messages = [{"role": "user", "content": [{"type": "text"}, block]} for block in blocks]
    images = tuple(
        SentImage(length // 4 * 3, length, (edges or {}).get(at, 100), at >= fixed, blocks[at])
        for at, length in enumerate(encoded)
    )
    body = {"messages": messages, "input": messages}
    return Sent(lambda: body, sum(encoded) + other_bytes, images, ImageBudget("base64"))


def failed(status: int | None, text: str, request: Sent, code: str | None = None) -> LlmFailure:
    return failure_of(Refusal(status, text, code), request, LIMITS)


LARGE = 100_000


@pytest.mark.parametrize("text", ["Payload Too Large", "", "<html>413</html>"])
def test_413_with_any_body_frees_half_of_the_bytes_a4(text: str) -> None:
    request = sent(LARGE, LARGE, LARGE, LARGE, 3 * LARGE)

    failure = failed(413, text, request)

    assert (failure.code, failure.offload_images) == (OFFLOAD, 4)


def test_413_to_a_body_whose_bytes_are_not_those_of_pictures_omits_none() -> None:
    request = sent(LARGE, LARGE, other_bytes=8 * LARGE)

    failure = failed(413, "", request)

    assert (failure.code, failure.offload_images) == (WINDOW, None)
    assert "its pictures take 200000 of 1000000 bytes" in failure.message


def test_413_to_a_body_shorter_than_any_known_limit_omits_none() -> None:
    failure = failed(413, "", sent(30_000, 30_000))

    assert (failure.code, failure.offload_images) == (WINDOW, None)
    assert "no server is known that takes less than its 60100 bytes" in failure.message
    assert "compact the session, or omit some yourself" in failure.message


@pytest.mark.parametrize("encoded", [(), (40,), (100, 100), (30_000, 30_000)])
def test_413_to_a_short_body_is_the_same_with_and_without_small_pictures(
    encoded: tuple[int, ...],
) -> None:
    failure = failed(413, "", sent(*encoded))

    assert (failure.code, failure.offload_images) == (WINDOW, None)


def test_413_for_ever_ends_with_pictures_that_could_not_be_its_reason() -> None:
    left, calls = [LARGE] * 60, 0
    while (failure := failed(413, "", sent(*left, other_bytes=10 * LARGE))).code == OFFLOAD:
        assert failure.offload_images is not None
        left, calls = left[failure.offload_images :], calls + 1

    assert failure.code == WINDOW
    assert (len(left), calls) == (3, 4)


def test_413_counts_the_pictures_that_a_body_refers_to() -> None:
    request = sent(LARGE, LARGE, LARGE, LARGE)
    images = tuple(replace(image, raw_bytes=LARGE, encoded_bytes=0) for image in request.images)

    failure = failed(413, "", replace(request, body_bytes=2_000, images=images))

    assert (failure.code, failure.offload_images) == (OFFLOAD, 2)


def test_413_about_tokens_is_a_full_window() -> None:
    text = "Request body too large for gpt-4o model. Max size: 8000 tokens."

    failure = failed(413, text, sent(LARGE, LARGE), "tokens_limit_reached")

    assert (failure.code, failure.offload_images) == (WINDOW, None)


def test_413_without_a_picture_needs_less_text() -> None:
    assert failed(413, "", sent()).code == WINDOW


BODY = [
    (400, "Request too large: 1100 bytes exceeds the maximum of 800 bytes", None),
    (400, "Request payload size exceeds the limit: 800 bytes.", None),
    (413, "Request exceeds the maximum size of 800 bytes", "request_too_large"),
]


@pytest.mark.parametrize(("status", "text", "code"), BODY)
def test_a_body_limit_in_the_text_gives_the_count(status: int, text: str, code: str | None) -> None:
    failure = failed(status, text, sent(*[100] * 10), code)

    assert (failure.code, failure.offload_images) == (OFFLOAD, 5)


def test_text_that_alone_exceeds_the_limit_is_said_at_once_v7() -> None:
    text = "Request too large: 1100 bytes exceeds the maximum of 800 bytes"

    failure = failed(400, text, sent(100, other_bytes=1000))

    assert failure.code == WINDOW
    assert "omitting pictures cannot help" in failure.message


COUNT = [
    "messages: too much media: 0 document pages + 25 images > 20",
    "Too many images and documents: 25 + 0 > 20",
    "Too many images in request: 25. The maximum is 20.",
    "Too many images in request. Max is 20, got 25.",
    "At most 20 image(s) may be provided in one request.",
    "Too many images provided. This model supports up to 20 images",
    "Exceeded maximum number of images: 25 > 20",
]


@pytest.mark.parametrize("text", COUNT)
def test_a_count_limit_gives_the_excess_h1(text: str) -> None:
    failure = failed(400, text, sent(*[100] * 25))

    assert (failure.code, failure.offload_images) == (OFFLOAD, 5)


def test_pictures_that_cannot_go_count_against_the_limit_v7() -> None:
    failure = failed(400, COUNT[2], sent(*[100] * 25, fixed=21))

    assert failure.code == WINDOW


IMAGE = [
    "messages.1.content.1.image.source.base64: image exceeds 5 MB maximum: 5600000 bytes > 5242880 bytes",
    "Image at messages[1].content[1].image_url is too large: got 5600000 bytes, maximum is 5242880 bytes",
    "Invalid image: image exceeds the limit of 5 MB",
    "Image is too large. The maximum size is 5242880 bytes",
]


@pytest.mark.parametrize("text", IMAGE)
def test_a_size_limit_omits_through_the_newest_picture_over_it_a1(text: str) -> None:
    failure = failed(400, text, sent(100, 5_600_000, 100))

    assert (failure.code, failure.offload_images) == (OFFLOAD, 2)


def test_an_encoded_length_at_the_limit_is_not_over_it_h2() -> None:
    text = "image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes"

    failure = failed(400, text, sent(5_242_880, 5_242_884, 5_242_880))

    assert failure.offload_images == 2


def test_a_limit_on_raw_bytes_finds_the_picture_too_h2() -> None:
    by_reference = sent(800, 400, 400, 400)
    images = tuple(replace(image, encoded_bytes=0) for image in by_reference.images)

    failure = failed(
        400, "image exceeds the limit of 500 bytes", replace(by_reference, images=images)
    )

    assert failure.offload_images == 1


def test_many_pictures_of_large_dimensions_omit_the_fewest_a3() -> None:
    text = "messages.3.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"

    failure = failed(400, text, sent(*[100] * 21, edges={2: 2532, 6: 2532}))

    assert (failure.code, failure.offload_images) == (OFFLOAD, 1)


def test_a_picture_over_every_dimension_is_omitted_a9() -> None:
    text = "messages.2.content.1: At least one of the image dimensions exceed max allowed size: 8000 pixels"

    failure = failed(400, text, sent(*[100] * 6, edges={2: 9000}))

    assert failure.offload_images == 3


PATHS = [
    "messages.3.content.1.image.source.base64: Invalid image",
    "messages[3].content[1].image_url: Invalid image",
    "input[3].content[1].image_url: Could not process image",
    "messages.3: Could not process image",
    "messages.3.content.1.image.source.base64: The image was specified using the image/png media type, but the image appears to be a image/jpeg image",
]


@pytest.mark.parametrize("text", PATHS)
def test_a_path_alone_omits_through_the_picture_that_it_names(text: str) -> None:
    failure = failed(400, text, sent(*[100] * 9))

    assert (failure.code, failure.offload_images) == (OFFLOAD, 4)


def test_a_path_names_one_of_several_pictures_of_a_message() -> None:
    blocks: list[dict[str, Any]] = [{"type": "image"} for _ in range(4)]
    images = tuple(SentImage(1, 4, 9, True, block) for block in blocks)
    body = {"messages": [{"role": "user", "content": blocks}]}
    request = Sent(lambda: body, 99, images, ImageBudget())

    assert failed(400, "messages.0.content.1: Invalid image", request).offload_images == 2
    assert failed(400, "messages.0: Invalid image", request).offload_images == 4


def test_a_vague_refusal_halves_the_pictures_a8() -> None:
    left, counts = 9, []
    while left > 0:
        failure = failed(400, "Could not process image", sent(*[100] * left))
        assert failure.offload_images is not None
        counts.append(failure.offload_images)
        left -= failure.offload_images

    assert counts == [5, 2, 1, 1]


WINDOWS = [
    (400, "prompt is too long: 210000 tokens > 200000 maximum", None),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", None),
    (400, "This model's maximum context length is 128000 tokens. However, ...", None),
    (400, "Your input exceeds the context window of this model.", None),
    (400, "anything", "context_length_exceeded"),
    (400, "the request exceeds the available context size", "exceed_context_size_error"),
    (400, "This model's maximum prompt length is 131072 but the request contains 140000.", None),
    (400, "The input token count (12) exceeds the maximum number of tokens allowed (10).", None),
    (400, "Input is too long for requested model.", None),
    (400, "Your request exceeded model token limit: 131072 (requested: 140000)", None),
    (429, "Request too large for gpt-4 on tokens per min (TPM): Limit 30, Requested 40.", None),
    (500, "the input length exceeds the context length", None),
    (None, "maximum context length is 4096 tokens", None),
]


@pytest.mark.parametrize(("status", "text", "code"), WINDOWS)
def test_a_full_context_window_is_recognised(
    status: int | None, text: str, code: str | None
) -> None:
    assert failed(status, text, sent(100), code).code == WINDOW


UNRECOGNISED = [
    (400, "Bad request", FailureCode.INVALID_REQUEST),
    (400, "temperature: must be at most 2", FailureCode.INVALID_REQUEST),
    (
        400,
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 70 instead.",
        FailureCode.INVALID_REQUEST,
    ),
    (429, "Too many requests with images", FailureCode.RATE_LIMIT),
    (401, "image access denied: too large", FailureCode.AUTH),
    (500, "image server exploded: invalid state", FailureCode.SERVER),
    (404, "The model `gpt-image-9` does not exist", FailureCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("status", "text", "code"), UNRECOGNISED)
def test_an_unrecognised_refusal_stays_what_it_was(status: int, text: str, code: str) -> None:
    failure = failed(status, text, sent(100, 100))

    assert (failure.code, failure.offload_images) == (code, None)


@pytest.mark.parametrize(
    "text",
    [
        "This model does not support image inputs",
        "No endpoints found that support image input",
        "Invalid content type. image_url is only supported by certain models.",
        "unknown variant `image_url`, expected `text`",
    ],
)
def test_a_model_without_images_is_no_reason_to_omit_them(text: str) -> None:
    failure = failed(404 if "endpoints" in text else 400, text, sent(100))

    assert failure.code == FailureCode.UNSUPPORTED_CONTENT
    assert "limits" in failure.message


def test_image_wording_without_an_image_stays_what_it_was() -> None:
    assert failed(400, "Could not process image", sent()).code == FailureCode.INVALID_REQUEST


def test_status_and_request_id_are_kept() -> None:
    failure = failure_of(Refusal(413, "", None, "req_7"), sent(100), LIMITS)

    assert (failure.status, failure.request_id) == (413, "req_7")
