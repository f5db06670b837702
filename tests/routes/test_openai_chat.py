"""Chat completions through the real SDK against a strict server."""

from typing import Any

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import BlockStart, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from everfold.llm.failure import FailureCode
from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute
from everfold.routes.settings import RouteSettingsError, settings_from
from tests.providers.answers import Answer, ToolUse
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake
from tests.routes.kit import LOOK, assistant, call, picture, request, result, system, user
from tests.routes.talk import Talk, Talking, blocks, finish, usage

KEY = "sk-test-0000000000"


@pytest.fixture
def talk(fake: StrictFake, versions: RequestVersions, talking: Talking) -> Talk:
    return chat(fake, versions, talking)


def chat(fake: StrictFake, versions: RequestVersions, talking: Talking, **more: Any) -> Talk:
    settings = {"provider": "p", "base_url": fake.base_url, "api_key": KEY, **more}
    return talking(OpenAiChatRoute(settings_from(ChatSettings, settings), versions))


def test_text_is_streamed_in_pieces(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer("Hello there", piece=6))

    chunks = talk.ask(request(user("hi")))

    assert chunks[:3] == [BlockStart(0, "text"), TextDelta(0, "Hello "), TextDelta(0, "there")]
    assert blocks(chunks) == [{"type": "text", "text": "Hello there"}]
    assert finish(chunks).kind == "stop"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_before_text_in_its_own_block(
    fake: StrictFake, talk: Talk, field: str
) -> None:
    fake.will(Answer("so", reasoning="hmmm", piece=2, reasoning_field=field))

    chunks = talk.ask(request(user("hi")))

    assert chunks[1:3] == [ReasoningDelta(0, "hm"), ReasoningDelta(0, "mm")]
    assert blocks(chunks) == [
        {"type": "reasoning", "text": "hmmm"},
        {"type": "text", "text": "so"},
    ]


def test_tool_calls_keep_their_arguments_as_written(fake: StrictFake, talk: Talk) -> None:
    calls = (ToolUse("c1", "look", '{"at": 1}'), ToolUse("c2", "look", '{"at": '))
    fake.will(Answer("", calls=calls, finish="tool-calls"))

    chunks = talk.ask(request(user("hi"), tools=[LOOK]))

    assert blocks(chunks) == [
        {"type": "tool-call", "id": "c1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "tool-call", "id": "c2", "name": "look", "arguments": '{"at": '},
    ]
    assert finish(chunks).kind == "tool-calls"
    assert ToolCallDelta(1, "c2", "", "look") in chunks


def test_usage_counts_cached_and_reasoning_tokens(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer(input_tokens=90, output_tokens=7, cached_tokens=64, reasoning_tokens=5))

    chunks = talk.ask(request(user("hi")))

    assert usage(chunks) == Usage(90, 7, 97, 64, None, 5)


@pytest.mark.parametrize("reason", ["stop", "max-tokens"])
def test_the_finish_reason_is_translated(fake: StrictFake, talk: Talk, reason: str) -> None:
    fake.will(Answer(finish=reason))

    assert finish(talk.ask(request(user("hi")))).kind == reason


def test_a_content_filter_is_a_failure(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer(finish="content-filter"))

    assert talk.failure(request(user("hi"))).code == FailureCode.CONTENT_FILTER


def test_the_body_is_what_the_vendor_documents(fake: StrictFake, talk: Talk) -> None:
    talk.ask(
        request(
            system("be brief"),
            user("hi"),
            assistant("looking", call("c1")),
            result("c1", "a boat"),
            tools=[LOOK],
            temperature=0.5,
            maxTokens=100,
            stop=["END"],
            reasoningEffort="low",
        )
    )

    look_call = {"name": "look", "arguments": '{"at":1}'}
    assert fake.last.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "looking",
                "tool_calls": [{"id": "c1", "type": "function", "function": look_call}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a boat"},
        ],
        "tools": [{"type": "function", "function": LOOK}],
        "max_tokens": 100,
        "temperature": 0.5,
        "stop": ["END"],
        "reasoning_effort": "low",
        "stream_options": {"include_usage": True},
        "stream": True,
    }


def test_settings_give_the_dialect(
    fake: StrictFake, versions: RequestVersions, talking: Talking
) -> None:
    talk = chat(
        fake,
        versions,
        talking,
        max_tokens_field="max_completion_tokens",
        reasoning="object",
        reasoning_back="reasoning_content",
        has_usage=False,
        has_cache_key=True,
        extra_body={"top_k": 3},
    )

    own = assistant({"type": "reasoning", "text": "hm"}, "ok")
    talk.ask(request(user("hi"), own, user("on"), maxTokens=5, reasoningEffort="high"))

    body = fake.last.body
    assert body["max_completion_tokens"] == 5
    assert body["reasoning"] == {"effort": "high"}
    assert body["prompt_cache_key"] == "session-1"
    assert body["top_k"] == 3
    assert "stream_options" not in body
    messages = body["messages"]
    assert isinstance(messages, list)
    assert messages[1]["reasoning_content"] == "hm"


def test_pictures_travel_as_data_urls_with_the_true_type_a7(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    jpeg, webp = img(media_type="image/jpeg"), img(media_type="image/webp")

    talk.ask(
        request(user("see", picture(store, jpeg, "image/png"), picture(store, webp, "image/png")))
    )

    assert fake.last.seen is not None
    assert [image.media_type for image in fake.last.seen.images] == ["image/jpeg", "image/webp"]
    assert [image.data for image in fake.last.seen.images] == [jpeg, webp]


def test_pictures_of_tool_results_all_arrive_m6(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    pictures = [picture(store, img(shade=shade)) for shade in range(3)]

    talk.ask(
        request(
            user("look"),
            assistant(call("a"), call("b")),
            result("a", pictures[0], "and", pictures[1]),
            result("b", pictures[2]),
            tools=[LOOK],
        )
    )

    assert fake.last.seen is not None
    assert [image.role for image in fake.last.seen.images] == ["user"] * 3
    assert [image.data for image in fake.last.seen.images] == [img(shade=s) for s in range(3)]
    assert fake.last.seen.roles == ["user", "assistant", "tool", "tool", "user"]


def test_a_request_without_tools_has_its_calls_as_text_d11(fake: StrictFake, talk: Talk) -> None:
    talk.ask(request(user("hi"), assistant(call("c1")), result("c1", "a boat"), user("sum up")))

    assert fake.last.seen is not None
    assert fake.last.seen.calls == []
    assert "a boat" in fake.last.seen.all_text
    assert '[Called tool look with {"at":1}]' in fake.last.seen.all_text


def test_arguments_that_are_no_json_object_are_sent_inside_one(
    fake: StrictFake, talk: Talk
) -> None:
    spoilt = assistant(call("c1", arguments='{"at": '), call("c2", arguments=""))

    talk.ask(request(user("hi"), spoilt, result("c1", "no"), result("c2", "ok"), tools=[LOOK]))

    messages: Any = fake.last.body["messages"]
    arguments = [call["function"]["arguments"] for call in messages[1]["tool_calls"]]
    assert arguments == ['{"invalid_json":"{\\"at\\": "}', "{}"]


def test_capabilities_come_from_the_limits(talk: Talk) -> None:
    capabilities = talk.route.capabilities("m")

    assert capabilities.user_images
    assert capabilities.tool_images
    assert not capabilities.assistant_images
    assert capabilities.budget is not None
    assert capabilities.budget.representation == "base64"


def test_image_prices_follow_the_tiles_and_an_omitted_one_costs_its_text_r304(
    talk: Talk, store: FileAttachments
) -> None:
    large, omitted = (
        picture(store, img(width=1024, height=513)),
        picture(store, img(), offloaded=True),
    )

    prices = talk.route.image_tokens("m", [large, omitted])

    assert prices[0] == 85 + 170 * 4
    assert 20 < prices[1] < 85


def test_a_large_image_is_priced_as_the_smaller_one_that_is_sent_r304(talk: Talk) -> None:
    block = {"type": "image", "attachment": {"width": 4000, "height": 1000}}

    assert list(talk.route.image_tokens("m", [block])) == [85 + 170 * 4]


def test_the_key_is_sent_as_a_header_and_nowhere_else(fake: StrictFake, talk: Talk) -> None:
    talk.ask(request(user("hi")))

    assert fake.last.headers["authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in fake.last.raw


def test_unknown_settings_are_refused_without_their_value() -> None:
    with pytest.raises(RouteSettingsError, match="api_kye") as caught:
        settings_from(ChatSettings, {"provider": "p", "api_kye": KEY})

    assert KEY not in str(caught.value)


def test_the_vendors_own_server_needs_a_key(
    versions: RequestVersions, talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    talk = Talk(OpenAiChatRoute(settings_from(ChatSettings, {"provider": "openai"}), versions))

    failure = talk.failure(request(user("hi")))

    assert failure.code == FailureCode.AUTH
    assert "OPENAI_API_KEY" in failure.message


def test_another_server_gets_no_key_and_no_account_of_the_vendor_i4(
    fake: StrictFake,
    versions: RequestVersions,
    talking: Talking,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "vendor-secret")
    settings = settings_from(ChatSettings, {"provider": "local", "base_url": fake.base_url})

    talking(OpenAiChatRoute(settings, versions)).ask(request(user("hi")))

    assert "vendor-secret" not in str(fake.last.headers)


def test_a_named_variable_holds_the_key_for_any_server(
    fake: StrictFake,
    versions: RequestVersions,
    talking: Talking,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_KEY", "sk-local-123456")
    table = {"provider": "local", "base_url": fake.base_url, "api_key_env": "LOCAL_KEY"}

    talking(OpenAiChatRoute(settings_from(ChatSettings, table), versions)).ask(request(user("hi")))

    assert fake.last.headers["authorization"] == "Bearer sk-local-123456"
