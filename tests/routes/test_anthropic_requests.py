"""What the Messages API is sent."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.failure import FailureCode, LlmError
from everfold.llm.route import LlmRequest
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import claude
from tests.routes.kit import (
    LOOK,
    Json,
    assistant,
    call,
    picture,
    request,
    result,
    system,
    text,
    user,
)
from tests.routes.talk import Talk, Talking

MARK = {"cache_control": {"type": "ephemeral"}}
BUDGET_MODEL = "claude-sonnet-4-5"


@pytest.fixture
def talk(fake: StrictFake, versions: RequestVersions, talking: Talking) -> Talk:
    return claude(fake, versions, talking)


def sent(fake: StrictFake, talk: Talk, asked: LlmRequest) -> dict[str, Any]:
    """Ask, and return the body that was received."""
    talk.ask(asked)
    return fake.last.body


def bare(value: Any) -> Any:
    """Return a value without cache breakpoints, which are no part of the prefix that is cached."""
    if isinstance(value, Mapping):
        return {key: bare(item) for key, item in value.items() if key != "cache_control"}
    return [bare(item) for item in value] if isinstance(value, list) else value


def marked(body: Mapping[str, Any]) -> list[Json]:
    """Return the marked blocks of a body in the order of the cache: tools, system, messages."""
    content = [block for message in body["messages"] for block in message["content"]]
    blocks = [*body.get("tools", ()), *body.get("system", ()), *content]
    return [bare(block) for block in blocks if "cache_control" in block]


def prefixes(body: Mapping[str, Any]) -> list[list[Any]]:
    """Return what the provider caches at each breakpoint in the messages."""
    blocks = [
        (message["role"], block) for message in body["messages"] for block in message["content"]
    ]
    ends = [at for at, (_, block) in enumerate(blocks) if "cache_control" in block]
    head = [bare(body.get("tools")), bare(body.get("system"))]
    return [[*head, *((role, bare(block)) for role, block in blocks[: end + 1])] for end in ends]


def test_the_body_is_what_the_vendor_documents(fake: StrictFake, talk: Talk) -> None:
    messages = (
        system("be brief"),
        user("hi"),
        assistant("looking", call("c1")),
        result("c1", "a boat"),
        user("and now?"),
    )

    body = sent(
        fake, talk, request(*messages, tools=[LOOK], temperature=0.5, maxTokens=100, stop=["END"])
    )

    schema = LOOK["parameters"]
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": [text("a boat")]}
    use = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}
    assert body == {
        "model": "m",
        "max_tokens": 100,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "stream": True,
        "tools": [
            {"name": "look", "description": "Look somewhere.", "input_schema": schema, **MARK}
        ],
        "system": [{**text("be brief"), **MARK}],
        "messages": [
            {"role": "user", "content": [{**text("hi"), **MARK}]},
            {"role": "assistant", "content": [text("looking"), use]},
            {"role": "user", "content": [answer, {**text("and now?"), **MARK}]},
        ],
    }


def test_what_stays_the_same_comes_first(fake: StrictFake, talk: Talk) -> None:
    body = sent(fake, talk, request(system("s"), user("hi"), tools=[LOOK]))

    assert list(body)[-3:] == ["tools", "system", "messages"]


def test_the_limits_say_how_long_an_answer_may_be(fake: StrictFake, talk: Talk) -> None:
    assert sent(fake, talk, request(user("hi")))["max_tokens"] == 32_000
    assert sent(fake, talk, request(user("hi"), model="claude-3-opus-1"))["max_tokens"] == 4096


def test_extra_fields_are_laid_over_the_body(
    fake: StrictFake, versions: RequestVersions, talking: Talking
) -> None:
    talk = claude(fake, versions, talking, extra_body={"service_tier": "standard_only"})

    assert sent(fake, talk, request(user("hi")))["service_tier"] == "standard_only"


def test_users_and_assistants_alternate(fake: StrictFake, talk: Talk) -> None:
    sent(fake, talk, request(user("one"), user("two"), assistant("three"), user("four")))

    assert fake.last.seen is not None
    assert fake.last.seen.roles == ["user", "assistant", "user"]
    assert [seen.text for seen in fake.last.seen.texts] == ["one", "two", "three", "four"]


def test_the_model_neither_begins_nor_ends_a_conversation(fake: StrictFake, talk: Talk) -> None:
    sent(fake, talk, request(assistant("one"), assistant("two")))

    assert fake.last.seen is not None
    assert fake.last.seen.roles == ["user", "assistant", "user", "assistant", "user"]


def test_words_that_nobody_answered_stay_a_prefix(fake: StrictFake, talk: Talk) -> None:
    first = sent(fake, talk, request(user("hi"), assistant("one")))
    second = sent(fake, talk, request(user("hi"), assistant("one"), assistant("two"), user("ok")))

    count = len(first["messages"])
    assert bare(second["messages"][:count]) == bare(first["messages"])


def test_a_session_without_a_word_is_a_valid_request(fake: StrictFake, talk: Talk) -> None:
    body = sent(fake, talk, request(system("be brief")))

    assert [message["role"] for message in body["messages"]] == ["user"]


def test_a_later_system_prompt_is_read_in_place(
    fake: StrictFake, versions: RequestVersions, talking: Talking
) -> None:
    talk = claude(fake, versions, talking, limits={"system_prompt_update": "in-history"})

    body = sent(fake, talk, request(system("one"), user("hi"), assistant("ok"), system("two")))

    assert bare(body["system"]) == [text("one")]
    assert bare(body["messages"][-1]["content"]) == [
        text("[The system prompt is now:]"),
        text("two"),
    ]


def test_no_empty_text_is_sent_a10(fake: StrictFake, talk: Talk) -> None:
    talk.ask(
        request(
            system(""),
            user("hi"),
            assistant(text("")),
            user("   "),
            assistant({"type": "reasoning", "text": "hm"}),
            assistant(text(""), call("c1")),
            result("c1", text("")),
            tools=[LOOK],
        )
    )

    assert fake.last.violation is None
    assert fake.last.seen is not None
    assert [seen.text for seen in fake.last.seen.texts] == ["hi", "(blank message)", "(no output)"]


def test_the_same_tool_id_twice_becomes_two_m2(fake: StrictFake, talk: Talk) -> None:
    steps = [assistant(call("call_0")), result("call_0", "a")] * 2

    sent(fake, talk, request(user("hi"), *steps, tools=[LOOK]))

    assert fake.last.violation is None
    assert fake.last.seen is not None
    ids = [seen.id for seen in fake.last.seen.calls]
    assert ids[0] == ids[1] == "call_0"
    assert ids[2] == ids[3] != "call_0"


FOREIGN = ["call.0", "call:0", "call_0", "x" * 70, "x" * 64 + "yyyyyy", "呼び出し"]


def test_tool_ids_of_another_provider_are_made_valid_m5(fake: StrictFake, talk: Talk) -> None:
    asked = request(
        user("hi"),
        assistant(*[call(id_) for id_ in FOREIGN], provider="other"),
        *[result(id_, id_) for id_ in FOREIGN],
        tools=[LOOK],
    )

    first, second = sent(fake, talk, asked), sent(fake, talk, asked)

    assert fake.last.violation is None
    assert first == second
    answers = first["messages"][2]["content"]
    assert [bare(block["content"]) for block in answers] == [[text(id_)] for id_ in FOREIGN]
    assert answers[2]["tool_use_id"] == "call_0"


def test_a_call_without_an_answer_gets_one_d8(fake: StrictFake, talk: Talk) -> None:
    sent(fake, talk, request(user("hi"), assistant(call("c1")), user("so?"), tools=[LOOK]))

    assert fake.last.violation is None
    content = fake.last.body["messages"][2]["content"]  # type: ignore[index]  # the body is any JSON
    assert content[0]["is_error"] is True
    assert content[1]["text"] == "so?"


def test_wrong_arguments_are_sent_as_an_object(fake: StrictFake, talk: Talk) -> None:
    messages = (user("hi"), assistant(call("c1", arguments='{"at": ')), result("c1", "no"))

    body = sent(fake, talk, request(*messages, tools=[LOOK]))

    assert body["messages"][1]["content"][0]["input"] == {"invalid_json": '{"at": '}


def test_a_tool_name_of_another_provider_is_made_valid(fake: StrictFake, talk: Talk) -> None:
    messages = (user("hi"), assistant(call("c1", name="functions.Bash:x")), result("c1", "no"))

    body = sent(fake, talk, request(*messages, tools=[LOOK]))

    assert body["messages"][1]["content"][0]["name"] == "functions_Bash_x"


def test_calls_are_text_where_no_tools_are_declared_d11(
    fake: StrictFake, versions: RequestVersions, talking: Talking
) -> None:
    talk = claude(fake, versions, talking)

    sent(fake, talk, request(user("hi"), assistant(call("c1")), result("c1", "a boat")))

    assert fake.last.seen is not None
    assert fake.last.seen.calls == []
    assert "a boat" in fake.last.seen.all_text


def test_pictures_in_tool_results_stay_there_m6(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    seen_there = picture(store, img(shade=1))
    messages = (user("hi", picture(store, img())), assistant(call("c1")), result("c1", seen_there))

    sent(fake, talk, request(*messages, tools=[LOOK]))

    assert fake.last.seen is not None
    assert [(image.role, image.data) for image in fake.last.seen.images] == [
        ("user", img()),
        ("tool", img(shade=1)),
    ]


def test_a_failed_call_with_a_picture_says_so_in_words(
    fake: StrictFake, talk: Talk, store: FileAttachments
) -> None:
    answer = result("c1", picture(store, img()), is_error=True)

    body = sent(fake, talk, request(user("hi"), assistant(call("c1")), answer, tools=[LOOK]))

    block = body["messages"][2]["content"][0]
    assert "is_error" not in block
    assert block["content"][0] == text("[The call failed:]")


def test_breakpoints_are_on_tools_prompt_and_the_latest_two_user_messages(
    fake: StrictFake, talk: Talk
) -> None:
    talk_so_far = [user("one"), assistant("two"), user("three"), assistant("four"), user("five")]

    body = sent(fake, talk, request(system("s"), *talk_so_far, tools=[LOOK]))

    tool, prompt, *rest = marked(body)
    assert (tool["name"], prompt) == ("look", text("s"))
    assert rest == [text("three"), text("five")]


def test_the_next_request_finds_what_the_last_one_cached(fake: StrictFake, talk: Talk) -> None:
    history = [system("s"), user("begin")]
    before: Sequence[list[Any]] = ()
    for step in range(6):
        body = sent(fake, talk, request(*history, tools=[LOOK]))
        assert not before or before[-1] in prefixes(body)
        before = prefixes(body)
        ids = [f"c{step}-{number}" for number in range(30)]
        history.append(assistant("next", *[call(id_) for id_ in ids]))
        history += [result(id_, id_) for id_ in ids]


def test_breakpoints_can_be_switched_off(
    fake: StrictFake, versions: RequestVersions, talking: Talking
) -> None:
    talk = claude(fake, versions, talking, is_cached=False)

    assert marked(sent(fake, talk, request(system("s"), user("hi"), tools=[LOOK]))) == []


def test_an_effort_is_a_budget_of_tokens_on_older_models(fake: StrictFake, talk: Talk) -> None:
    asked = request(user("hi"), model=BUDGET_MODEL, reasoningEffort="medium", temperature=0.3)

    body = sent(fake, talk, asked)

    assert body["thinking"] == {"type": "enabled", "budget_tokens": 8192}
    assert "temperature" not in body


def test_a_budget_leaves_room_for_the_answer(fake: StrictFake, talk: Talk) -> None:
    more: Json = {"model": BUDGET_MODEL, "reasoningEffort": "high"}

    assert sent(fake, talk, request(user("hi"), maxTokens=4000, **more))["thinking"] == {
        "type": "enabled",
        "budget_tokens": 3000,
    }
    assert "thinking" not in sent(fake, talk, request(user("hi"), maxTokens=1000, **more))


def test_an_effort_is_a_word_on_newer_models(fake: StrictFake, talk: Talk) -> None:
    body = sent(fake, talk, request(user("hi"), model="claude-opus-5", reasoningEffort="max"))

    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "max"}


def test_without_an_effort_the_model_decides(fake: StrictFake, talk: Talk) -> None:
    assert "thinking" not in sent(fake, talk, request(user("hi"), model=BUDGET_MODEL))


def test_an_unknown_effort_is_refused_with_the_known_ones(talk: Talk) -> None:
    with pytest.raises(LlmError, match=r"'huge'.*high, low, max, medium, xhigh") as caught:
        talk.ask(request(user("hi"), reasoningEffort="huge"))

    assert caught.value.failure.code == FailureCode.INVALID_REQUEST
