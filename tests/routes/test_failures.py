"""Failures with stable codes, and without secrets."""

import pytest

from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode
from everfold.routes.counting import SentImage, offload_required
from everfold.routes.failures import failure_of, refusal_of, retry_after_ms, scrubbed
from everfold.routes.limits import Limits, RouteLimits
from everfold.routes.rejections import Refusal, Sent
from everfold.routes.suspicion import Suspicion
from everfold.routes.wire import Wire

LIMITS = Limits("openai-compatible").of("m")
PLAIN = Sent(dict, 100, (), ImageBudget())


def code(refusal: Refusal) -> str:
    return failure_of(refusal, PLAIN, LIMITS).code


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, FailureCode.INVALID_REQUEST),
        (401, FailureCode.AUTH),
        (402, FailureCode.AUTH),
        (403, FailureCode.AUTH),
        (404, FailureCode.INVALID_REQUEST),
        (408, FailureCode.TIMEOUT),
        (429, FailureCode.RATE_LIMIT),
        (500, FailureCode.SERVER),
        (504, FailureCode.TIMEOUT),
        (529, FailureCode.SERVER),
    ],
)
def test_a_status_gives_the_code(status: int, expected: str) -> None:
    assert code(Refusal(status, "no")) == expected


@pytest.mark.parametrize(
    ("status", "text", "vendor_code"),
    [
        (404, "The model `gpt-9` does not exist or you do not have access to it.", None),
        (404, 'model "llama9" not found, try pulling it first', None),
        (404, "model: claude-9", "not_found_error"),
        (404, "models/gemini-9 is not found for API version v1beta", None),
        (404, "The API deployment for this resource does not exist.", "DeploymentNotFound"),
        (404, "No endpoints found for acme/m-9.", "404"),
        (404, "<html><h1>404 Not Found</h1></html>", None),
        (404, "", None),
        (405, "Method Not Allowed", None),
        (400, "Model Not Exist", "invalid_request_error"),
        (400, "acme/m-9 is not a valid model ID", "400"),
        (400, "Invalid model: m-9", "1500"),
        (400, "The requested model 'm-9' does not exist.", "model_not_found"),
        (400, "The model `m-9` has been decommissioned.", "model_decommissioned"),
        (400, "The provided model identifier is invalid.", None),
    ],
)
def test_an_unknown_model_or_address_is_advised_about_as_such(
    status: int, text: str, vendor_code: str | None
) -> None:
    failure = failure_of(Refusal(status, text, vendor_code), PLAIN, LIMITS)

    assert failure.code == FailureCode.INVALID_REQUEST
    assert failure.message.endswith("; check the model's name and the base_url of this route")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "No file found with id file-abc"),
        (404, "Previous response_id resp_1 was not found"),
        (400, "this model does not support the temperature parameter"),
        (400, "the tool result for the model's call was not found"),
        (401, "invalid model key"),
    ],
)
def test_other_refusals_advise_no_other_model(status: int, text: str) -> None:
    assert "base_url" not in failure_of(Refusal(status, text), PLAIN, LIMITS).message


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "the oldest picture must be omitted"), (3, "the 3 oldest pictures must be omitted")],
)
def test_the_pictures_that_must_go_are_counted_in_words(count: int, said: str) -> None:
    assert offload_required("too large", count).failure.message == f"too large; {said}"


@pytest.mark.parametrize(
    ("vendor_code", "expected"),
    [
        ("overloaded_error", FailureCode.SERVER),
        ("rate_limit_error", FailureCode.RATE_LIMIT),
        ("invalid_request_error", FailureCode.INVALID_REQUEST),
        ("429", FailureCode.RATE_LIMIT),
        ("502", FailureCode.SERVER),
        (None, FailureCode.SERVER),
    ],
)
def test_an_error_amid_a_stream_is_read_by_its_own_code(
    vendor_code: str | None, expected: str
) -> None:
    assert code(Refusal(None, "no", vendor_code)) == expected


def test_a_used_up_quota_is_not_worth_a_retry() -> None:
    failure = failure_of(Refusal(429, "quota", "insufficient_quota"), PLAIN, LIMITS)

    assert (failure.code, failure.is_retryable) == (FailureCode.AUTH, False)


def test_moderation_is_a_content_filter() -> None:
    assert code(Refusal(403, "Input flagged by moderation")) == FailureCode.CONTENT_FILTER
    assert code(Refusal(400, "no", "content_policy_violation")) == FailureCode.CONTENT_FILTER


@pytest.mark.parametrize(
    ("headers", "milliseconds"),
    [
        ({"retry-after": "7"}, 7000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after-ms": "120", "retry-after": "7"}, 120),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90_000),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(
    headers: dict[str, str], milliseconds: int | None
) -> None:
    assert retry_after_ms(headers, now_s=10) == milliseconds


@pytest.mark.parametrize(
    ("body", "text", "vendor_code"),
    [
        ({"error": {"message": "no", "type": "t", "code": None}}, "no", "t"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "no", "overloaded_error"),
        ({"message": "no", "code": 429}, "no", "429"),
        ({"error": "no"}, "no", None),
        ({"detail": "no"}, "no", None),
        ("plain", "plain", None),
        (None, "", None),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "no"}}}, "Provider returned error no", None),
    ],
)  # fmt: skip
def test_every_vendors_error_body_is_read(body: object, text: str, vendor_code: str | None) -> None:
    refusal = refusal_of(400, {}, body)

    assert (refusal.text, refusal.code) == (text, vendor_code)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-test-0000aaaa1111",
        "header Authorization: Bearer abcdefghij.klm",
        "key my-own-secret was refused",
    ],
)
def test_no_secret_stands_in_a_failure_i4(text: str) -> None:
    shown = scrubbed(text, ("my-own-secret",))

    assert "[secret]" in shown
    assert not any(secret in shown for secret in ("0000aaaa", "klm", "my-own-secret"))


@pytest.mark.parametrize(("status", "text"), [(500, "no"), (413, "request too large")])
def test_no_secret_stands_in_a_request_id_i4(status: int, text: str) -> None:
    refusal = Refusal(status, text, request_id="req my-own-secret sk-test-0000aaaa1111")
    sent = Sent(dict, 1001, (SentImage(300, 400, 9),), ImageBudget())

    failure = failure_of(refusal, sent, RouteLimits(), ("my-own-secret",))

    assert failure.request_id == "req [secret] [secret]"


def test_a_long_page_is_cut_to_one_valid_line() -> None:
    shown = scrubbed("<html>\n\x1b[31m\ud800" + "x" * 9000)

    assert "\n" not in shown
    assert "\x1b" not in shown
    assert len(shown.encode()) < 600


class TestSuspicion:
    """A11: big requests that fail without a reason."""

    LIMITS = RouteLimits(silent_failure_bytes=1000)
    WIRE = b"x" * 1001
    SENT = Sent(dict, 1001, (SentImage(300, 400, 9), SentImage(300, 400, 9)), ImageBudget())

    def judged(self, suspicion: Suspicion, wire: bytes, vendor_code: FailureCode) -> str:
        failure = failure_of(Refusal(500, ""), self.SENT, self.LIMITS)
        assert failure.code == FailureCode.SERVER
        changed = type(failure)(failure.message, vendor_code)
        return suspicion.judged(changed, self.SENT, Wire((wire,)), self.LIMITS).code

    @pytest.mark.parametrize("kind", [FailureCode.SERVER, FailureCode.EMPTY_RESPONSE])
    def test_the_third_failure_of_the_same_big_request_asks_for_fewer_pictures_a11(
        self, kind: FailureCode
    ) -> None:
        suspicion = Suspicion()

        codes = [self.judged(suspicion, self.WIRE, kind) for _ in range(3)]

        assert codes == [kind, kind, FailureCode.IMAGE_OFFLOAD_REQUIRED]

    def test_small_requests_are_not_suspected(self) -> None:
        suspicion = Suspicion()

        codes = [self.judged(suspicion, b"x" * 1000, FailureCode.SERVER) for _ in range(4)]

        assert codes == [FailureCode.SERVER] * 4

    def test_a_rate_limit_is_never_about_size(self) -> None:
        suspicion = Suspicion()

        codes = [self.judged(suspicion, self.WIRE, FailureCode.RATE_LIMIT) for _ in range(4)]

        assert codes == [FailureCode.RATE_LIMIT] * 4


@pytest.mark.parametrize("said", ["inf", "nan", "-inf", "1e400", "soon"])
def test_a_wait_that_is_no_number_of_seconds_is_no_wait(said: str) -> None:
    assert retry_after_ms({"retry-after": said}, 0) is None
    assert retry_after_ms({"retry-after-ms": said}, 0) is None


def test_a_wait_beyond_every_calendar_is_a_number_that_the_log_can_hold() -> None:
    assert retry_after_ms({"retry-after": "1e300"}, 0) == 2**53 - 1
