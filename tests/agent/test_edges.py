"""The edges of the loop: input that is none, text that is not valid Unicode, settings that make no request."""

from typing import Any

import pytest

from everfold.agent.errors import AgentError, InputError
from everfold.agent.settings import ModelSettings
from everfold.llm.chunks import Usage
from everfold.routes.scripted import fails, says
from everfold.session.errors import IdError, PayloadError, SessionNotFoundError
from tests.agent.kit import Host, png, run, shown


@pytest.mark.parametrize("content", ["", [], [""]])
def test_an_empty_input_is_refused_and_stores_nothing(host: Host, content: str | list[str]) -> None:
    agent = host.agent(host.route())

    with pytest.raises(InputError, match="the input is empty"):
        run(agent.ask(content))

    assert host.log(agent.session_id) == []


@pytest.mark.parametrize("content", [None, 123, b"bytes", {"a": 1}, object()])
def test_an_input_that_is_no_content_is_refused_and_stores_nothing(
    host: Host, content: Any
) -> None:
    agent = host.agent(host.route())

    with pytest.raises(InputError):
        run(agent.ask(content))

    assert host.log(agent.session_id) == []


def test_a_part_by_itself_is_an_input_of_one_part(host: Host) -> None:
    route = host.route(otherwise=lambda _: says("ok"))
    agent = host.agent(route)
    block: Any = {"type": "text", "text": "hello"}
    picture: Any = png(1)

    run(agent.ask(block))
    run(agent.ask(picture))

    users = [line for line in shown(route) if line.startswith("user")]
    assert users == ["user: hello", "user: [image 1]"]


def test_an_input_of_blanks_is_not_dropped_a10(host: Host) -> None:
    route = host.route()

    run(host.agent(route).ask("   "))

    assert shown(route)[-1] == "user:    "


def test_a_block_that_is_none_is_refused_and_named(host: Host) -> None:
    agent = host.agent(host.route())

    with pytest.raises(InputError, match=r"'image'.*refers to no attachment"):
        run(agent.ask([{"type": "image"}]))


def test_text_of_a_user_that_is_not_valid_unicode_is_mended_and_logged(host: Host) -> None:
    route = host.route()
    agent = host.agent(route)

    run(agent.ask("caf\udce9"))

    assert shown(route)[-1] == "user: caf\ufffd"
    repaired = host.data(agent.session_id, "content/repaired")
    assert repaired[0]["places"] == [{"path": "content[0].text", "reason": "1 lone surrogate(s)"}]


def test_text_of_a_model_that_is_not_valid_unicode_is_mended_and_logged(host: Host) -> None:
    agent = host.agent(host.route(says("ab\ud800cd", pieces=1)))

    assert run(agent.ask("hi")).text == "ab\ufffdcd"
    message = host.data(agent.session_id, "assistant/message")[0]["message"]
    assert host.data(agent.session_id, "content/repaired")[0]["messageId"] == message["id"]


def test_a_failure_that_is_not_valid_unicode_is_told_all_the_same(host: Host) -> None:
    agent = host.agent(host.route(fails("SERVER", "bad \ud800"), fails("AUTH", "no \udcff")))

    result = run(agent.ask("hi"))

    assert result.failure is not None
    assert result.failure.message == "no \ufffd"


def test_token_counts_that_the_log_cannot_hold_count_as_none(host: Host) -> None:
    text = says("ok")
    odd = type(text)((*text.chunks[:-2], Usage(2**60, 1), text.chunks[-1]))
    agent = host.agent(host.route(odd))

    assert run(agent.ask("hi")).usage == Usage(0, 0)


@pytest.mark.parametrize("kind", ["tool-call", "tool-result", "reasoning"])
def test_a_user_cannot_slip_in_what_only_a_model_says(host: Host, kind: str) -> None:
    agent = host.agent(host.route())

    with pytest.raises(InputError, match="never from here"):
        run(agent.ask([{"type": kind, "text": "x"}]))


def test_a_source_without_a_kind_is_refused(host: Host) -> None:
    agent = host.agent(host.route())

    with pytest.raises(InputError, match=r"source\.kind is not a text"):
        run(agent.ask("hi", source={"plugin": "x"}))


def test_settings_that_make_no_header_are_refused_before_a_turn_is_opened(host: Host) -> None:
    with pytest.raises(PayloadError, match=r"config\.model is not a text"):
        host.agent(host.route(), model=ModelSettings("scripted", ""))

    with pytest.raises(AgentError, match="there is no route to provider 'elsewhere'"):
        host.agent(host.route(), model=ModelSettings("elsewhere", "m"))


@pytest.mark.parametrize("key", ["", "x" * 201, "\ud800"])
def test_a_key_that_cannot_be_an_id_is_refused(host: Host, key: str) -> None:
    agent = host.agent(host.route())

    with pytest.raises(IdError):
        run(agent.ask("hi", key=key))

    assert host.log(agent.session_id) == []


@pytest.mark.parametrize(
    ("session", "refusal"),
    [("nobody", SessionNotFoundError), ("a/b", IdError), (7, IdError)],
)
def test_an_agent_on_no_session_is_refused_when_it_is_made(
    host: Host, session: Any, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        host.agent(host.route(), session)


@pytest.mark.parametrize("does_load", [True, False])
def test_an_agent_takes_the_session_that_create_or_load_returned(
    host: Host, *, does_load: bool
) -> None:
    session = host.sessions.create("talk")
    given = host.sessions.load("talk") if does_load else session

    agent = host.agent(host.route(says("hello")), given)

    assert agent.session_id == "talk"
    assert run(agent.ask("hi")).text == "hello"
