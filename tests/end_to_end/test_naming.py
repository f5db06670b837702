"""A picture that a provider refuses for ever is named in the session, and what names it repairs it."""

import re
from dataclasses import replace

from everfold.agent.results import TurnResult
from everfold.llm.failure import FailureCode
from everfold.projections.image_offload.decisions import bring_back, omit
from tests.end_to_end.conftest import Opening
from tests.end_to_end.product import UNCHECKED, Product, image
from tests.end_to_end.standing import Standing
from tests.providers.pictures import img
from tests.providers.refusing import Rejection
from tests.providers.strict_fake import StrictFake

BAD = img(shade=3)


def named(result: TurnResult, said: str) -> tuple[int, int]:
    """Return the image that a failure names after some words."""
    assert result.failure is not None
    found = re.search(rf"{said}: (\d+):(\d+)$", result.failure.message)
    assert found is not None, result.failure.message
    return int(found.group(1)), int(found.group(2))


def repaired(product: Product, result: TurnResult, said: str) -> TurnResult:
    """Omit the image that a failure names, and go on."""
    seq, index = named(result, said)
    omit(product.access, {seq: [index]})
    return product.say("and now?")


def test_the_image_that_a_provider_names_is_named_and_its_omission_repairs_the_session(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, cannot_decode=frozenset([BAD]))
    fake.rejection = Rejection("R3")
    standing.under_test = {"decode"}
    product = opened(UNCHECKED, plugins=[])
    product.most_calls = 2

    refused = product.say("see", *[product.old_picture(img(shade=n)) for n in range(5)])
    again = repaired(product, refused, "in this session")

    assert again.kind == "completed"
    assert product.kept() == [True, True, True, False, True]


def test_a_vague_refusal_names_the_images_that_are_new_since_the_newest_answer(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, cannot_decode=frozenset([BAD]))
    fake.rejection = Rejection("R4")
    standing.under_test = {"decode"}
    product = opened(UNCHECKED, plugins=[])
    product.most_calls = 3

    product.say("see", *[product.old_picture(img(shade=n)) for n in range(3)])
    refused = product.say("and this?", product.old_picture(BAD))
    again = repaired(product, refused, "new since the newest answer")

    assert again.kind == "completed"
    assert product.kept() == [True, True, True, False]


def test_an_attempt_that_was_recovered_says_which_image_was_refused(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, cannot_decode=frozenset([BAD]))
    fake.rejection = Rejection("R3")
    standing.under_test = {"decode"}
    product = opened(UNCHECKED)
    product.most_calls = 3

    product.say("see", *[product.old_picture(img(shade=n)) for n in range(5)])
    (attempt,) = product.data("assistant/attempt")
    said = str(attempt["stream"][-1]["chunk"]["reason"]["failure"]["message"])
    seq = int(said.rpartition("in this session: ")[2].partition(":")[0])
    bring_back(product.access, {seq: [0, 1, 2]})
    again = product.say("and now?")

    assert said.endswith(f"in this session: {seq}:3")
    assert again.kind == "completed"
    assert product.kept() == [True, True, True, False, True]


def test_an_image_whose_bytes_are_gone_is_named_and_its_omission_repairs_the_session(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(UNCHECKED)
    product.most_calls = 1
    gone = product.old_picture(img(shade=9))
    product.host.attachments.delete(gone["attachment"]["attachmentId"])

    refused = product.say("see", image(img(shade=1)), gone)
    again = repaired(product, refused, "in this session")

    assert refused.failure is not None
    assert refused.failure.code == FailureCode.UNSUPPORTED_CONTENT
    assert again.kind == "completed"
    assert product.kept() == [True, False]
