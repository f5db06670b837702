"""The Responses API through the real SDK: files, inline fallback, encrypted reasoning."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import BlockStart, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from everfold.llm.failure import FailureCode
from everfold.routes.limits import Limits
from tests.providers.answers import Answer, Refuse, ToolUse
from tests.providers.pictures import img
from tests.providers.refusing import error
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import raw
from tests.routes.kit import (
    LOOK,
    Json,
    assistant,
    call,
    offloaded,
    picture,
    request,
    result,
    system,
    user,
)
from tests.routes.talk import Talk, Talking, blocks, finish, usage
from tests.routes.wires import responses_route

MakeTalk = Callable[..., Talk]
DOWN = Refuse(503, b"files are down")


@pytest.fixture
def make_talk(
    fake: StrictFake, versions: RequestVersions, tmp_path: Path, talking: Talking
) -> MakeTalk:
    def make(folder: str = "uploads", **more: Any) -> Talk:
        return talking(responses_route(fake, versions, tmp_path / folder, **more))

    return make


@pytest.fixture
def talk(make_talk: MakeTalk) -> Talk:
    return make_talk()


def sent_files(fake: StrictFake) -> list[str | None]:
    assert fake.last.seen is not None
    return [image.file_id for image in fake.last.seen.images]


def test_an_answer_is_streamed_by_block(fake: StrictFake, talk: Talk) -> None:
    calls = (ToolUse("c1", "look", '{"at":1}'),)
    fake.will(Answer("so", reasoning="hm", calls=calls, finish="tool-calls", piece=9))

    chunks = talk.ask(request(user("hi"), tools=[LOOK]))

    assert BlockStart(0, "reasoning") == chunks[0]
    assert ReasoningDelta(0, "hm") in chunks
    assert TextDelta(1, "so") in chunks
    assert ToolCallDelta(2, "c1", '{"at":1}', "look") in chunks
    assert [block["type"] for block in blocks(chunks)] == ["reasoning", "text", "tool-call"]
    assert finish(chunks).kind == "tool-calls"


def test_usage_and_max_tokens_are_translated(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer(finish="max-tokens", input_tokens=9, cached_tokens=4, reasoning_tokens=1))

    chunks = talk.ask(request(user("hi")))

    assert usage(chunks) == Usage(9, 3, 12, 4, None, 1)
    assert finish(chunks).kind == "max-tokens"


def test_a_content_filter_is_a_failure(fake: StrictFake, talk: Talk) -> None:
    fake.will(Answer(finish="content-filter"))

    assert talk.failure(request(user("hi"))).code == FailureCode.CONTENT_FILTER


def test_an_end_that_cannot_be_read_is_a_malformed_answer(fake: StrictFake, talk: Talk) -> None:
    text = '{"type": "response.output_text.delta", "output_index": 0, "delta": "hi"}'
    end = '{"type": "response.completed", "response": {"incomplete_details": 7}}'
    fake.will(raw(f"data: {text}\n\ndata: {end}\n\n"))

    failure = talk.failure(request(user("hi")))

    assert (failure.code, failure.is_retryable) == (FailureCode.MALFORMED_RESPONSE, True)


def test_the_body_is_what_the_vendor_documents(fake: StrictFake, talk: Talk) -> None:
    talk.ask(
        request(
            system("be brief"),
            user("hi"),
            assistant("looking", call("c1")),
            result("c1", "a boat"),
            system("be long"),
            tools=[LOOK],
            temperature=0.5,
            maxTokens=100,
            reasoningEffort="low",
        )
    )

    assert fake.last.body == {
        "model": "m",
        "instructions": "be brief",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "hi"}],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "looking"}],
            },
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "a boat"},
            {
                "type": "message",
                "role": "developer",
                "content": [{"type": "input_text", "text": "be long"}],
            },
        ],
        "tools": [{"type": "function", **LOOK, "strict": False}],
        "max_output_tokens": 100,
        "temperature": 0.5,
        "reasoning": {"effort": "low", "summary": "auto"},
        "prompt_cache_key": "session-1",
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    }


def test_stop_sequences_are_refused_and_not_dropped(talk: Talk) -> None:
    failure = talk.failure(request(user("hi"), stop=["END"]))

    assert failure.code == FailureCode.INVALID_REQUEST
    assert "stop" in failure.message


class TestReasoning:
    """Encrypted reasoning goes back to the model that made it, and to no other (K6, M1)."""

    def stored(self, talk: Talk, fake: StrictFake, **source: str) -> Json:
        fake.will(Answer("so", reasoning="hm", signature="gAAA-secret"))
        chunks = talk.ask(request(user("hi")))
        state = finish(chunks).replay_state
        assert state is not None
        return assistant(*blocks(chunks), replay_state=dict(state), **source)

    def test_it_goes_back_as_it_came(self, fake: StrictFake, talk: Talk) -> None:
        message = self.stored(talk, fake)
        fake.rules = replace(fake.rules, signatures=frozenset(["gAAA-secret"]))

        talk.ask(request(user("hi"), message, user("on")))

        items: Any = fake.last.body["input"]
        assert items[1] == {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "gAAA-secret",
        }

    @pytest.mark.parametrize("other", [{"provider": "q"}, {"model": "m2"}])
    def test_it_is_left_out_for_another_provider_or_model(
        self, fake: StrictFake, talk: Talk, other: dict[str, str]
    ) -> None:
        message = self.stored(talk, fake, **other)
        fake.rules = replace(fake.rules, signatures=frozenset())

        talk.ask(request(user("hi"), message, user("on")))

        assert fake.last.violation is None
        assert fake.last.seen is not None
        assert "so" in fake.last.seen.all_text
        assert fake.last.seen.thoughts == []

    def test_it_returns_when_the_model_returns(self, fake: StrictFake, talk: Talk) -> None:
        message = self.stored(talk, fake)

        talk.ask(request(user("hi"), message, user("on"), model="m2"))
        talk.ask(request(user("hi"), message, user("on")))

        counts = [len(call.seen.thoughts) for call in fake.calls if call.seen is not None]
        assert counts == [0, 0, 1]


class TestFiles:
    """Pictures are uploaded once and referred to by id (R250)."""

    def test_a_picture_is_uploaded_once(
        self, fake: StrictFake, talk: Talk, store: FileAttachments
    ) -> None:
        block = picture(store, img())

        talk.ask(request(user(block)))
        talk.ask(request(user(block), assistant("ok"), user("again", block)))

        assert list(fake.uploads.values()) == [img()]
        assert sent_files(fake) == ["file-0000", "file-0000"]

    def test_tool_results_hold_their_pictures(
        self, fake: StrictFake, talk: Talk, store: FileAttachments
    ) -> None:
        block = picture(store, img())

        talk.ask(request(user("hi"), assistant(call("c")), result("c", "see", block), tools=[LOOK]))

        assert fake.last.seen is not None
        assert [image.role for image in fake.last.seen.images] == ["tool"]

    def test_uploads_are_remembered_by_the_next_process(
        self, fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
    ) -> None:
        block = picture(store, img())
        make_talk().ask(request(user(block)))

        make_talk().ask(request(user(block)))

        assert fake.upload_count == 1

    def test_another_account_uploads_for_itself(
        self, fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
    ) -> None:
        block = picture(store, img())
        make_talk().ask(request(user(block)))

        make_talk(api_key="sk-test-1111111111").ask(request(user(block)))

        assert fake.upload_count == 2

    def test_a_file_that_is_gone_is_uploaded_again_at_the_next_attempt(
        self, fake: StrictFake, talk: Talk, store: FileAttachments
    ) -> None:
        blocks_ = [picture(store, img(shade=shade)) for shade in range(2)]
        talk.ask(request(user(*blocks_)))
        kept, gone = sent_files(fake)
        del fake.uploads[str(gone)]

        failure = talk.failure(request(user(*blocks_)))
        talk.ask(request(user(*blocks_)))

        assert failure.is_retryable
        assert sent_files(fake)[0] == kept
        assert sent_files(fake)[1] not in (gone, None)
        assert fake.upload_count == 3

    def test_the_file_budget_is_checked_before_anything_is_uploaded(
        self, fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
    ) -> None:
        talk = make_talk(limits={"files": {"max_images": 2, "count_quantum": 1}})
        pictures = [picture(store, img(shade=shade)) for shade in range(3)]

        failure = talk.failure(request(user(*pictures)))

        assert failure.code == FailureCode.IMAGE_OFFLOAD_REQUIRED
        assert failure.offload_images == 1
        assert fake.upload_count == 0

    def test_the_budget_of_file_mode_counts_raw_bytes_r245(self) -> None:
        files = Limits("openai-responses").of("m").files

        assert files is not None
        assert (files.representation, files.max_bytes) == ("raw", 128 * 2**20)


class TestInlineFallback:
    """When an upload fails, pictures go inline under a tighter budget (R253)."""

    def test_a_failed_upload_sends_the_pictures_inline(
        self, fake: StrictFake, talk: Talk, store: FileAttachments
    ) -> None:
        fake.upload_refusal = DOWN

        talk.ask(request(user(picture(store, img()))))

        assert fake.last.seen is not None
        assert [image.data for image in fake.last.seen.images] == [img()]

    def test_the_inline_budget_is_the_tighter_one_r253(
        self, fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
    ) -> None:
        talk = make_talk(limits={"inline": {"max_bytes": 20_000, "byte_quantum": 10_000}})
        messages = [user(picture(store, img(6_000, shade=shade))) for shade in range(4)]
        talk.ask(request(*messages))
        fake.upload_refusal = DOWN
        messages.append(user(picture(store, img(6_000, shade=9))))

        failure = talk.failure(request(*messages))

        assert failure.code == FailureCode.IMAGE_OFFLOAD_REQUIRED
        assert failure.offload_images == 3

    def test_what_was_omitted_for_the_fallback_stays_omitted_when_files_are_back(
        self, fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
    ) -> None:
        talk = make_talk(limits={"inline": {"max_bytes": 20_000, "byte_quantum": 10_000}})
        messages = [user(picture(store, img(6_000, shade=shade))) for shade in range(5)]
        fake.upload_refusal = DOWN
        left = talk.recovered(messages)
        fake.upload_refusal = None

        talk.ask(request(*left))

        assert left == offloaded(messages, 3)
        assert len(sent_files(fake)) == 2

    def test_a_refused_key_is_no_reason_to_go_inline(
        self, fake: StrictFake, talk: Talk, store: FileAttachments
    ) -> None:
        fake.upload_refusal = error("openai", 401, "no")

        failure = talk.failure(request(user(picture(store, img()))))

        assert failure.code == FailureCode.AUTH
        assert fake.calls == []

    def test_a_slow_upload_goes_inline(
        self, fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
    ) -> None:
        fake.upload_refusal = Refuse(200, first_byte_s=30)

        make_talk(upload_s=0.2).ask(request(user(picture(store, img()))))

        assert sent_files(fake) == [None]
