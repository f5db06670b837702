"""Keys and secret headers are sent to the provider, and are found nowhere else (I4)."""

import json
import logging
import traceback
from pathlib import Path

import pytest

from everfold.cli.main import main
from everfold.projections.compaction.errors import CompactionError
from tests.end_to_end.conftest import Opening
from tests.end_to_end.history import turns
from tests.end_to_end.product import KEY, TOKEN, Product, image
from tests.providers.answers import Answer, Refuse
from tests.providers.pictures import img
from tests.providers.refusing import error
from tests.providers.strict_fake import StrictFake

SECRETS = (KEY, TOKEN)
ROUTE = {"headers_env": {"X-Team": "THE_TOKEN"}}
ECHO = f"no entry for {KEY}, team {TOKEN}, header Authorization: Bearer {KEY}"


def stream(*lines: str) -> Refuse:
    """Return a stream of exactly these lines."""
    return Refuse(200, "".join(lines).encode(), {"Content-Type": "text/event-stream"})


ECHOES: dict[str, Answer | Refuse] = {
    "400": error("openai", 400, ECHO),
    "401": error("openai", 401, ECHO),
    "403, no JSON": Refuse(403, ECHO.encode()),
    "413": Refuse(413, ECHO.encode()),
    "429": error("openai", 429, ECHO),
    "500": Refuse(500, ECHO.encode()),
    "amid the stream": Answer(
        "abcdefgh", error={"type": "error", "error": {"message": ECHO, "type": "api_error"}}
    ),
    "an event that is no JSON": stream(f"event: x\ndata: {{{ECHO}\n\n"),
    "an event of a wrong form": stream(f"data: {json.dumps({'choices': ECHO, 'type': 7})}\n\n"),
    "an answer of a wrong form": stream(
        f"data: {json.dumps({'choices': [{'delta': {'tool_calls': ECHO}}], 'type': ECHO})}\n\n"
    ),
    "a picture": error("openai", 400, f"Could not process image: {ECHO}"),
    "a window": error("openai", 400, f"maximum context length: {ECHO}"),
}


def found_in(folder: Path) -> list[str]:
    """Return the files of a folder that hold a secret."""
    return [
        str(file)
        for file in folder.rglob("*")
        if file.is_file() and any(secret.encode() in file.read_bytes() for secret in SECRETS)
    ]


def is_clean(text: str) -> bool:
    """Tell whether a text holds no secret."""
    return not any(secret in text for secret in SECRETS)


def shapes_of(product: Product) -> str:
    """Return every representation of what a host is made of."""
    host = product.host
    things = [host, host.profile, host.means, host.route(), product.agent(), host.waterfalls]
    inside = [vars(thing) for thing in things if hasattr(thing, "__dict__")]
    return "\n".join(map(repr, [*things, *inside, product.results]))


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES.keys())
def test_i4_a_provider_that_repeats_secrets_gets_them_nowhere(
    opened: Opening,
    fake: StrictFake,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    echo: Answer | Refuse,
) -> None:
    caplog.set_level(logging.DEBUG)
    product = opened(route=ROUTE)
    product.most_calls = 6
    fake.default = echo if isinstance(echo, Answer) else fake.default
    fake.will(*[echo] * 3)

    product.say("hello", image(img()))
    fake.default = Answer()
    fake.answers.clear()
    product.say("and now?")

    sent = fake.last.headers
    assert sent["x-team"] == TOKEN
    assert KEY in (sent.get("authorization", ""), sent.get("x-api-key", "")) or KEY in str(sent)
    assert found_in(tmp_path) == []
    assert is_clean(caplog.text)
    assert is_clean(str([vars(record) for record in caplog.records]))
    assert is_clean(shapes_of(product))


def test_i4_a_failed_summary_tells_no_secret(
    opened: Opening, fake: StrictFake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    product = opened(route=ROUTE, plugin={"compaction": {"keep_tokens": 100}})
    product.most_calls = 2
    product.append(*turns(10, "w" * 400))
    product.say("hello")
    fake.will(error("openai", 400, ECHO))

    with pytest.raises(CompactionError) as caught:
        product.compact()

    assert is_clean("".join(traceback.format_exception(caught.value)))
    assert found_in(tmp_path) == []
    assert is_clean(caplog.text)


PROFILE = """
route = "main"
system_prompt = "be brief"

[routes.main]
adapter = "openai-chat"
base_url = "{url}"
api_key_env = "THE_KEY"
headers_env = {{ X-Team = "THE_TOKEN" }}
model = "m-1"
"""


@pytest.mark.parametrize("answer", [Answer(), error("openai", 401, ECHO)])
def test_i4_the_command_line_shows_and_records_no_secret(
    fake: StrictFake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    answer: Answer | Refuse,
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("THE_TOKEN", TOKEN)
    (tmp_path / "p.toml").write_text(PROFILE.format(url=fake.base_url))
    places = ["--profile", str(tmp_path / "p.toml"), "--store", str(tmp_path / "cli.sqlite")]
    fake.will(answer)

    statuses = [
        main(["run", "hello", *places, "--record", str(tmp_path / "recording.jsonl")]),
        main(["run", "hello again", *places, "--json"]),
        main(["log", "session-1", "--store", str(tmp_path / "cli.sqlite"), "--json"]),
    ]

    assert statuses[1:] == [0, 0]
    assert (tmp_path / "recording.jsonl").exists()
    assert found_in(tmp_path) == []
    out, err = capfd.readouterr()
    assert is_clean(out + err)


def test_i4_without_a_key_the_variable_is_named(
    fake: StrictFake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("THE_KEY", raising=False)
    monkeypatch.setenv("THE_TOKEN", TOKEN)
    (tmp_path / "p.toml").write_text(PROFILE.format(url=fake.base_url))

    status = main(["run", "hello", "--profile", str(tmp_path / "p.toml"), "--store", "sqlite://"])

    assert status != 0
    assert "THE_KEY" in capfd.readouterr().err
    assert fake.calls == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"\0" + TOKEN.encode())

    assert found_in(tmp_path) == [str(tmp_path / "deep" / "file")]
