"""More of what providers refuse: call ids, pictures that cannot be sent, models without pictures."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.llm.failure import FailureCode
from everfold.llm.images import retained
from tests.providers.pictures import img
from tests.providers.refusing import Rejection
from tests.providers.rules import Rules
from tests.providers.strict_fake import StrictFake
from tests.routes.kit import LOOK, assistant, call, picture, request, result, user
from tests.routes.talk import Talk

MakeTalk = Callable[..., Talk]


@pytest.mark.parametrize(
    ("rules", "tool_ids"),
    [
        (Rules(idre=True, pairing=True), {}),
        (Rules(max_id=40, pairing=True), {"max_length": 40}),
        (
            Rules(nine=True, pairing=True),
            {"alphabet": "a-zA-Z0-9", "max_length": 9, "exact_length": 9},
        ),
    ],
)
def test_m5_foreign_call_ids_are_accepted_and_the_same_each_time(
    fake: StrictFake, make_talk: MakeTalk, rules: Rules, tool_ids: dict[str, Any]
) -> None:
    fake.rules = rules
    foreign = ["call.0", "call:0", "call_0", "x" * 70, "x" * 64 + "y" * 6, "呼び出し", "call_0"]
    messages = [user("go")]
    for id_ in foreign:
        messages += [assistant(call(id_)), result(id_, f"of {id_}")]

    make_talk(tool_ids=tool_ids).ask(request(*messages, tools=[LOOK]))
    make_talk(tool_ids=tool_ids).ask(request(*messages, user("on"), tools=[LOOK]))

    first, second = (call.seen.calls for call in fake.accepted if call.seen is not None)
    assert [call.id for call in first] == [call.id for call in second]
    assert len({call.id for call in first}) == len(foreign)


def test_s7_a_text_message_works_after_every_picture_was_omitted(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, images=True, max_images=0)
    fake.rejection = Rejection("R4")
    talk = make_talk()

    left = talk.recovered([user(picture(store, img(shade=n))) for n in range(3)])
    talk.ask(request(*left, assistant("ok"), user("on")))

    assert [len(retained(message["content"])) for message in left] == [0, 0, 0]
    assert fake.last.violation is None


def test_a_picture_whose_bytes_are_missing_names_what_to_do(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    block = picture(store, img())
    store.delete(block["attachment"]["attachmentId"])

    failure = make_talk().failure(request(user(block)))

    assert failure.code == FailureCode.UNSUPPORTED_CONTENT
    assert block["attachment"]["attachmentId"] in failure.message
    assert "put its bytes back, or omit it" in failure.message


def test_a_text_only_model_gets_no_picture_r258(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, images=False)
    images = {"user": False, "tool": False}

    make_talk(images=images).ask(request(user("see", picture(store, img()))))

    assert len(fake.accepted) == 1
    assert fake.last.seen is not None
    assert "reads text only" in fake.last.seen.all_text


def test_a_type_that_a_route_does_not_take_is_sent_as_one_that_it_takes(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    block = picture(store, img(media_type="image/webp"))

    make_talk(request_version={"media_types": ["image/jpeg"]}).ask(request(user(block)))

    assert fake.last.seen is not None
    assert [image.media_type for image in fake.last.seen.images] == ["image/jpeg"]
    assert fake.last.violation is None
