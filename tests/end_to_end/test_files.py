"""Pictures that are uploaded and referred to, through the whole product: R250, R253."""

import pytest

from tests.end_to_end.conftest import Opening
from tests.end_to_end.product import Product, image
from tests.end_to_end.standing import Standing
from tests.providers.answers import Refuse
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake


@pytest.fixture
def wire() -> str:
    """The wire on which files can be uploaded."""
    return "files"


def sent(product: Product) -> list[tuple[bool, bool]]:
    """Return for each picture of the newest request whether it is a file, and whether it is inline."""
    seen = product.fake.last.seen
    assert seen is not None
    return [(each.file_id is not None, bool(each.encoded)) for each in seen.images]


def test_a_picture_is_uploaded_once_for_many_turns_and_restarts(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 3

    product.say("see", image(img(shade=1)), image(img(shade=2)))
    product.say("and now?")
    again = opened(session_id=product.session_id)
    again.say("and after a restart?")

    assert sent(again) == [(True, False)] * 2
    assert fake.upload_count == 2


def test_r253_pictures_travel_inline_under_the_tighter_budget_when_uploads_fail(
    opened: Opening, fake: StrictFake
) -> None:
    inline = {"max_bytes": None, "byte_quantum": 1, "max_images": 2, "count_quantum": 1}
    product = opened({"inline": inline})
    product.most_calls = 1
    fake.upload_refusal = Refuse(500, b"no room")

    result = product.say("see", *[image(img(shade=n)) for n in range(4)])

    assert result.kind == "completed"
    assert sent(product) == [(False, True)] * 2
    assert product.kept() == [False, False, True, True]


def test_r224_pictures_that_an_outage_omitted_stay_omitted_after_it(
    opened: Opening, fake: StrictFake
) -> None:
    inline = {"max_bytes": None, "byte_quantum": 1, "max_images": 2, "count_quantum": 1}
    product = opened({"inline": inline})
    product.most_calls = 2
    fake.upload_refusal = Refuse(500, b"no room")
    product.say("see", *[image(img(shade=n)) for n in range(4)])

    fake.upload_refusal = None
    product.say("and now?")

    assert product.kept() == [False, False, True, True]
    assert len(sent(product)) == 2


def test_a_file_that_the_provider_has_lost_is_uploaded_again(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    standing.under_test = {"file"}
    product = opened()
    product.most_calls = 3
    product.say("see", image(img(shade=1)))
    fake.uploads.clear()

    result = product.say("and now?")

    assert result.kind == "completed"
    assert sent(product) == [(True, False)]
    assert fake.upload_count == 2
