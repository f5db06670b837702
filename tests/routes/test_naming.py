"""Which picture a provider refuses: named by its path, an index or a file's id, and what the failure says."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.failure import FailureCode, ImagePlace, LlmFailure
from tests.providers.answers import Refuse
from tests.providers.pictures import corrupt, img
from tests.providers.refusing import Rejection, error
from tests.providers.strict_fake import StrictFake
from tests.routes.kit import LOOK, Json, assistant, call, picture, request, result, text, user
from tests.routes.talk import Talk, Talking
from tests.routes.wires import responses_route

MakeTalk = Callable[..., Talk]
BAD = img(shade=7)


def conversation(store: FileAttachments) -> list[Json]:
    """Return messages with five pictures; the omitted one is counted too, the bad one is the last."""
    return [
        user("see", picture(store, img(shade=1)), picture(store, img(shade=2), offloaded=True)),
        assistant(call("c")),
        result("c", text("here"), picture(store, img(shade=3))),
        user(
            "and",
            picture(store, img(shade=4)),
            picture(store, img(shade=5), offloaded=True),
            picture(store, BAD, name="quay.png"),
        ),
    ]


def failed(talk: Talk, messages: list[Json]) -> LlmFailure:
    return talk.failure(request(*messages, tools=[LOOK]))


def test_a_picture_named_by_its_path_is_named_by_its_place_and_its_name(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, cannot_decode=frozenset([BAD]))
    fake.rejection = Rejection("R3")
    messages = conversation(store)

    failure = failed(make_talk(), messages)

    attachment = messages[3]["content"][3]["attachment"]
    assert failure.code == FailureCode.IMAGE_OFFLOAD_REQUIRED
    assert failure.at_fault == (ImagePlace(messages[3]["id"], 2),)
    assert f'refused: "quay.png" ({attachment["attachmentId"][:15]})' in failure.message


def test_a_picture_of_a_tool_is_named_by_its_place(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, cannot_decode=frozenset([img(shade=3)]))
    fake.rejection = Rejection("R3")
    messages = conversation(store)

    failure = failed(make_talk(), messages)

    assert failure.at_fault == (ImagePlace(messages[2]["id"], 0),)


def test_a_vague_refusal_suspects_every_picture_that_was_sent(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, cannot_decode=frozenset([BAD]))
    fake.rejection = Rejection("R4")
    messages = conversation(store)

    failure = failed(make_talk(), messages)

    places = [(messages[0], 0), (messages[2], 0), (messages[3], 0), (messages[3], 2)]
    assert failure.suspects == tuple(ImagePlace(message["id"], at) for message, at in places)
    assert failure.at_fault == ()


def test_a_picture_over_a_limit_is_named(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.rules = replace(fake.rules, max_image_b64=8_000)
    large = picture(store, img(9_000), name="large.png")
    messages = [user("see", picture(store, img(shade=1)), large, picture(store, img(shade=2)))]

    failure = failed(make_talk(), messages)

    assert (failure.offload_images, failure.at_fault) == (2, (ImagePlace(messages[0]["id"], 1),))


@pytest.mark.parametrize(
    "said", ["Could not process image at index 2", "images[2]: Could not process image"]
)
def test_an_index_counts_the_pictures_of_the_request(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments, said: str
) -> None:
    fake.will(error("openai", 400, said))
    messages = conversation(store)

    failure = failed(make_talk(), messages)

    assert failure.at_fault == (ImagePlace(messages[3]["id"], 0),)


def test_a_picture_named_beside_the_message_is_found(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    messages = [user("see", picture(store, img(shade=1)), picture(store, img(shade=2)))]
    root = "input" if "responses" in str(type(make_talk().route)).lower() else "messages"
    told = {"message": "Could not process image", "param": f"{root}[0].content[2].image_url"}
    body = json.dumps({"error": told}).encode()
    fake.will(Refuse(400, body, {"Content-Type": "application/json"}))

    failure = failed(make_talk(), messages)

    assert (failure.offload_images, failure.at_fault) == (2, (ImagePlace(messages[0]["id"], 1),))


def test_another_refusal_of_a_picture_names_it_and_omits_none(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    messages = [user("see", picture(store, img(shade=1)), picture(store, img(shade=2)))]
    root = "input" if "responses" in str(type(make_talk().route)).lower() else "messages"
    fake.will(error("openai", 400, f"{root}.0.content.2: the input should be a dictionary"))

    failure = failed(make_talk(), messages)

    assert (failure.code, failure.offload_images) == (FailureCode.INVALID_REQUEST, None)
    assert failure.at_fault == (ImagePlace(messages[0]["id"], 1),)


def test_a_refusal_of_a_message_does_not_blame_its_pictures(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    fake.will(error("openai", 400, "messages.0: roles must alternate"))

    failure = failed(make_talk(), [user("see", picture(store, img()))])

    assert (failure.code, failure.at_fault) == (FailureCode.INVALID_REQUEST, ())


def test_a_picture_named_by_the_id_of_its_file_is_found(
    fake: StrictFake,
    versions: RequestVersions,
    store: FileAttachments,
    tmp_path: Path,
    talking: Talking,
) -> None:
    talk = talking(responses_route(fake, versions, tmp_path))
    messages = [user("see", picture(store, img(shade=1)), picture(store, img(shade=2)))]
    talk.ask(request(*messages))
    second = list(fake.uploads)[1]
    fake.will(error("openai", 400, f"Could not process image {second}"))

    failure = talk.failure(request(*messages))

    uploaded = [img(shade=1), img(shade=2)].index(fake.uploads[second])
    assert failure.at_fault == (ImagePlace(messages[0]["id"], uploaded),)


def test_a_picture_that_does_not_decode_is_named_before_anything_is_sent(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    messages = [user("see", picture(store, img()), picture(store, corrupt(img(900))))]

    failure = failed(make_talk(), messages)

    assert failure.at_fault == (ImagePlace(messages[0]["id"], 1),)
    assert fake.calls == []


def test_a_picture_whose_bytes_are_gone_is_named(
    fake: StrictFake, make_talk: MakeTalk, store: FileAttachments
) -> None:
    gone = picture(store, img(shade=9))
    store.delete(gone["attachment"]["attachmentId"])
    messages = [user("see", picture(store, img()), gone)]

    failure = failed(make_talk(), messages)

    assert failure.code == FailureCode.UNSUPPORTED_CONTENT
    assert failure.at_fault == (ImagePlace(messages[0]["id"], 1),)


def test_what_is_known_of_pictures_is_no_part_of_the_log() -> None:
    failure = LlmFailure("no", "UNKNOWN", at_fault=(ImagePlace("m", 0),), suspects=())

    assert failure.to_json() == {"message": "no", "code": "UNKNOWN"}
