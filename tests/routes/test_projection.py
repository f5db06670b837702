"""What any provider takes, made of what the log holds."""

from pathlib import Path

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.llm.failure import FailureCode, LlmError
from everfold.routes.limits import Limits, RouteLimits
from everfold.routes.pairing import NO_OUTPUT, UNANSWERED
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, TextPart, ThoughtPart, Turn
from everfold.routes.projection import BLANK, project
from tests.providers.pictures import img
from tests.routes.kit import Json, assistant, call, picture, result, system, text, user

ANY = Limits("anthropic").of("m")
CHAT = Limits("openai-compatible").of("m")
TEXT = Limits("deepseek").of("deepseek-chat")


@pytest.fixture
def store(tmp_path: Path) -> FileAttachments:
    return FileAttachments(tmp_path / "attachments")


def turns(*messages: Json, limits: RouteLimits = ANY) -> list[Turn]:
    return project(messages, "p", "m", limits, "/files/{digest}{extension}")


def ids(turns: list[Turn]) -> list[str]:
    parts = [part for turn in turns for part in turn.parts]
    return [part.id for part in parts if isinstance(part, (CallPart, AnswerPart))]


def test_blank_texts_are_never_sent_a10() -> None:
    got = turns(
        user("hi"),
        assistant(""),
        user("   "),
        assistant({"type": "reasoning", "text": "hm"}),
        assistant(call("c1")),
        result("c1", ""),
    )

    assert [turn.parts for turn in got] == [
        (TextPart("hi"),),
        (TextPart(BLANK),),
        (CallPart("c1", "look", '{"at":1}'),),
        (AnswerPart("c1", (TextPart(NO_OUTPUT),)),),
    ]


def test_a_call_without_a_result_is_answered() -> None:
    got = turns(user("hi"), assistant(call("c1"), call("c2")), result("c2", "two"), user("on"))

    assert got[2].parts == (
        AnswerPart("c1", (TextPart(UNANSWERED),), is_error=True),
        AnswerPart("c2", (TextPart("two"),)),
    )


def test_an_orphan_result_becomes_text_where_it_stood() -> None:
    got = turns(user("hi"), result("c9", "lost"), assistant("ok"))

    assert got[1].role == "user"
    assert got[1].parts[1] == TextPart("lost")
    assert "'c9'" in str(got[1].parts[0])


def test_a_second_answer_becomes_text() -> None:
    got = turns(assistant(call("c1")), result("c1", "one"), result("c1", "again"))

    assert [turn.role for turn in got] == ["assistant", "tool", "user"]
    assert got[2].parts[1] == TextPart("again")


def test_an_answer_after_a_user_message_is_put_to_its_call() -> None:
    got = turns(assistant(call("c1")), user("wait"), result("c1", "one"))

    assert [turn.role for turn in got] == ["assistant", "tool", "user"]
    assert got[1].parts == (AnswerPart("c1", (TextPart("one"),)),)


def test_an_id_used_twice_is_made_unique_and_pairs_m2() -> None:
    got = turns(
        assistant(call("call_0")),
        result("call_0", "a"),
        assistant(call("call_0")),
        result("call_0", "b"),
    )

    first, first_answer, second, second_answer = ids(got)
    assert (first, second) == (first_answer, second_answer)
    assert first == "call_0" != second


def test_an_id_used_twice_in_one_message_pairs_in_order_m2() -> None:
    got = turns(assistant(call("c"), call("c")), result("c", "a"), result("c", "b"))

    one, two = got[1].parts
    assert isinstance(one, AnswerPart)
    assert isinstance(two, AnswerPart)
    assert (one.parts, two.parts) == ((TextPart("a"),), (TextPart("b"),))
    assert one.id != two.id


def test_own_reasoning_is_kept_and_that_of_others_is_left_out_k6() -> None:
    own = assistant({"type": "reasoning", "text": "mine"}, "a", replay_state={"response": 1})
    foreign = assistant(
        {"type": "reasoning", "text": "theirs"}, "b", provider="q", replay_state={"response": 2}
    )

    got = turns(own, foreign)

    assert got[0].parts == (ThoughtPart("mine"), TextPart("a"))
    assert got[0].replay_state == {"response": 1}
    assert got[1].parts == (TextPart("b"),)
    assert got[1].replay_state is None


def test_a_picture_of_another_providers_files_is_text_k6() -> None:
    block = {"type": "image", "attachment": {"attachmentId": "file-123", "mediaType": "image/png"}}

    got = turns(user(block))

    assert got[0].parts == (TextPart('[Image "file-123" is kept elsewhere.]'),)


def test_an_omitted_picture_is_text_with_its_path(store: FileAttachments) -> None:
    block = picture(store, img(), offloaded=True, name="a.png")

    got = turns(user(block))

    (part,) = got[0].parts
    assert isinstance(part, TextPart)
    assert '"a.png"' in part.text
    assert f'"/files/{block["attachment"]["attachmentId"][7:]}.png"' in part.text


def test_a_file_is_handle_text_r259() -> None:
    block = {
        "type": "file",
        "attachment": {"attachmentId": "sha256:0", "name": "a.csv", "bytes": 3},
    }

    (part,) = turns(user(block))[0].parts

    assert isinstance(part, TextPart)
    assert part.text.startswith('[File "a.csv"')


def test_a_block_of_unknown_type_is_visible_text() -> None:
    (part,) = turns(user({"type": "hologram"}))[0].parts

    assert part == TextPart('[Content of type "hologram", which cannot be shown here.]')


def test_a_text_only_model_reads_text_for_every_picture_r258(store: FileAttachments) -> None:
    block, omitted = picture(store, img()), picture(store, img(), offloaded=True)

    got = turns(user(block, omitted), assistant(call("c")), result("c", block), limits=TEXT)

    assert not any(isinstance(part, ImagePart) for turn in got for part in turn.parts)
    assert "text only" in str(got[0].parts[0])
    assert "text only" in str(got[0].parts[1])
    assert "text only" in str(got[2].parts[0])


def test_pictures_of_a_result_follow_it_where_tool_messages_take_none_m6(
    store: FileAttachments,
) -> None:
    one, two = picture(store, img()), picture(store, img(shade=1))

    got = turns(
        assistant(call("a"), call("b")),
        result("a", "look", one),
        result("b", two),
        user("so?"),
        limits=CHAT,
    )

    assert [turn.role for turn in got] == ["assistant", "tool", "user", "user"]
    assert [part.at for part in got[2].parts if isinstance(part, ImagePart)] == [0, 1]
    assert got[1].parts[0] == AnswerPart(
        "a", (TextPart("look"), TextPart("[Image 1 of the next message.]"))
    )


def test_a_nested_result_keeps_its_picture(store: FileAttachments) -> None:
    inner = {"type": "tool-result", "toolCallId": "x", "content": [picture(store, img())]}

    got = turns(assistant(call("a")), result("a", inner, "after"))

    (answer,) = got[1].parts
    assert isinstance(answer, AnswerPart)
    assert isinstance(answer.parts[0], ImagePart)
    assert answer.parts[1] == TextPart("after")


def test_a_picture_in_the_system_prompt_is_unsupported_r254(store: FileAttachments) -> None:
    with pytest.raises(LlmError) as caught:
        turns(system(picture(store, img())))

    assert caught.value.failure.code == FailureCode.UNSUPPORTED_CONTENT


def test_a_picture_that_a_model_made_is_unsupported_where_no_assistant_may_hold_one_r254(
    store: FileAttachments,
) -> None:
    with pytest.raises(LlmError, match="a model made") as caught:
        turns(assistant(picture(store, img())))

    assert caught.value.failure.code == FailureCode.UNSUPPORTED_CONTENT


def test_a_later_system_message_is_user_text_where_it_is_not_read_in_place() -> None:
    got = turns(system("one"), user("hi"), system("two"))

    assert [turn.role for turn in got] == ["system", "user", "user"]
    assert got[2].parts[1] == TextPart("two")


def test_a_later_system_message_stays_where_it_is_read_in_place() -> None:
    got = turns(system("one"), user("hi"), system("two"), limits=CHAT)

    assert [turn.role for turn in got] == ["system", "user", "system"]


def test_text_beside_blank_text_is_kept_alone() -> None:
    assert turns(user(text(" "), text("hi")))[0].parts == (TextPart("hi"),)
