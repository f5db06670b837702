"""Keys and headers: what a route sends is what its settings say, and no failure shows it (I4)."""

from pathlib import Path
from typing import Any

import pytest

from everfold.attachments.versions import RequestVersions
from everfold.llm.failure import FailureCode
from tests.providers.refusing import error
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import raw
from tests.routes.kit import request, user
from tests.routes.talk import Talk, Talking
from tests.routes.wires import WIRES

HI = request(user("hi"))
KIND = '"type": "content_block_delta"'
SECRET = "vendor-secret"
VARIABLES = {
    "OPENAI_API_KEY": SECRET,
    "OPENAI_ADMIN_KEY": SECRET,
    "OPENAI_ORG_ID": SECRET,
    "OPENAI_PROJECT_ID": SECRET,
    "OPENAI_CUSTOM_HEADERS": f"X-Gateway: {SECRET}\nAuthorization: Bearer {SECRET}",
    "ANTHROPIC_API_KEY": SECRET,
    "ANTHROPIC_AUTH_TOKEN": SECRET,
    "ANTHROPIC_CUSTOM_HEADERS": f"X-Gateway: {SECRET}\nX-Api-Key: {SECRET}",
}


@pytest.fixture(params=sorted(WIRES))
def wire(request: pytest.FixtureRequest) -> str:
    """The name of each wire in turn."""
    return str(request.param)


class Making:
    """Makes talks on one wire."""

    def __init__(self, wire: str, *means: Any) -> None:
        self.wire, self.means = wire, means

    def __call__(self, **settings: Any) -> Talk:
        fake, versions, folder, talking = self.means
        talk: Talk = talking(WIRES[self.wire](fake, versions, folder, **settings))
        return talk


@pytest.fixture
def make(
    wire: str, fake: StrictFake, versions: RequestVersions, tmp_path: Path, talking: Talking
) -> Making:
    """Makes a talk with settings of the test's."""
    return Making(wire, fake, versions, tmp_path, talking)


def test_an_sdks_own_variables_reach_no_other_server_i4(
    fake: StrictFake, make: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)

    make().ask(HI)

    assert SECRET not in str(fake.last.headers)
    assert "sk-test-0000000000" in str(fake.last.headers)


def test_headers_of_the_settings_are_sent(fake: StrictFake, make: Making) -> None:
    make(headers={"X-Team": "harbour"}).ask(HI)

    assert fake.last.headers["x-team"] == "harbour"


def test_the_line_end_of_a_key_file_is_no_part_of_the_key(fake: StrictFake, make: Making) -> None:
    make(api_key="harbour-key-12345\n").ask(HI)

    assert "harbour-key-12345" in str(fake.last.headers)


def test_a_key_that_no_header_can_hold_is_refused_without_showing_it_i4(
    wire: str, fake: StrictFake, versions: RequestVersions, tmp_path: Path
) -> None:
    route = WIRES[wire](fake, versions, tmp_path, api_key="harbour\nkey-12345")

    failure = Talk(route).failure(HI)

    assert failure.code == FailureCode.AUTH
    assert "key-12345" not in failure.message
    assert "set api_key anew" in failure.message
    assert fake.calls == []


def test_the_token_of_a_header_is_not_repeated_in_a_failure_i4(
    fake: StrictFake, make: Making
) -> None:
    fake.will(error("openai", 400, "the token t0ken-of-harbour is not valid here"))

    failure = make(headers={"X-Auth": "Token t0ken-of-harbour"}).failure(HI)

    assert "t0ken" not in failure.message


def test_a_short_header_does_not_garble_what_a_provider_says(
    fake: StrictFake, make: Making
) -> None:
    fake.will(error("openai", 400, "field a1 is not valid"))

    failure = make(headers={"X-Shard": "a"}).failure(HI)

    assert "field a1 is not valid" in failure.message


def test_a_malformed_event_is_quoted_without_the_key_i4(fake: StrictFake, make: Making) -> None:
    key = "harbour-key-12345"
    kind = '"type": "response.output_text.delta"' if make.wire == "responses" else KIND
    fake.will(raw(f'data: {{{kind}, "index": "{key}", "choices": 5, "output_index": "{key}"}}\n\n'))

    failure = make(api_key=key).failure(HI)

    assert key not in failure.message
