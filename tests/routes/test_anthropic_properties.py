"""Whatever a log holds, the Messages API is sent a valid request, and the same one every time."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.routes.anthropic_messages import AnthropicMessagesRoute, AnthropicSettings
from everfold.routes.settings import settings_from
from tests.providers.pictures import img
from tests.providers.reading import read_messages
from tests.providers.rules import STRICT, violations
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

RULES = replace(STRICT, declared=True, signatures=frozenset())
texts = st.sampled_from(["", " ", "\n", "word", "呼", "x" * 50])
ids = st.sampled_from(["c1", "c2", "call.0", "call:0", "", "y" * 80])
blocks = st.one_of(
    st.builds(text, texts),
    st.just({"type": "image"}),
    st.just({"type": "mystery", "x": 1}),
    st.just({"type": "file", "attachment": {"attachmentId": "sha256:0", "name": "f", "bytes": 1}}),
)
said = st.one_of(
    st.builds(text, texts),
    st.just({"type": "reasoning", "text": "hm"}),
    st.builds(call, ids, st.sampled_from(["look", "a.b", ""]), st.sampled_from(["{}", "{", ""])),
)
messages = st.lists(
    st.one_of(
        st.lists(blocks, max_size=3).map(lambda content: user(*content)),
        st.lists(said, max_size=4).map(lambda content: assistant(*content)),
        st.builds(lambda id_, content: result(id_, *content), ids, st.lists(blocks, max_size=3)),
        texts.map(system),
    ),
    max_size=12,
)


@pytest.fixture
def route(versions: RequestVersions) -> AnthropicMessagesRoute:
    settings = settings_from(AnthropicSettings, {"provider": "p", "api_key": "k"})
    return AnthropicMessagesRoute(settings, versions)


def shown(message: Json, block: Json) -> Json:
    """Return a message with a real picture where one is wanted."""

    def fill(value: Any) -> Any:
        if value == {"type": "image"}:
            return block
        if isinstance(value, Mapping):
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    filled: Json = fill(message)
    return filled


@given(log=messages, has_tools=st.booleans())
def test_every_log_makes_a_valid_request(
    route: AnthropicMessagesRoute, store: FileAttachments, log: list[Json], has_tools: bool
) -> None:
    block = picture(store, img())
    tools = [LOOK] if has_tools else []
    asked = request(*[shown(message, block) for message in log], tools=tools)

    first, second = (asyncio.run(route.prepare(asked)) for _ in range(2))

    wire = orjson.dumps(first.body)
    seen = read_messages(orjson.loads(wire))
    assert list(violations(RULES, seen, len(wire), frozenset())) == []
    assert set(seen.roles[::2]) == {"user"}
    assert set(seen.roles[1::2]) <= {"assistant"}
    assert seen.roles[-1] == "user"
    assert orjson.dumps(second.body) == wire


@given(log=messages)
def test_no_picture_is_lost_on_the_way_m6(
    route: AnthropicMessagesRoute, store: FileAttachments, log: list[Json]
) -> None:
    block = picture(store, img())
    asked = [shown(message, block) for message in log]
    held = orjson.dumps([m for m in asked if m["role"] != "system"]).count(b'"type":"image"')

    prepared = asyncio.run(route.prepare(request(*asked, tools=[LOOK])))

    assert prepared.image_count == held
    assert orjson.dumps(prepared.body).count(b'"type":"image"') == held


@given(log=messages)
def test_a_session_that_goes_on_is_sent_what_a_fresh_process_would_send(
    route: AnthropicMessagesRoute,
    versions: RequestVersions,
    store: FileAttachments,
    log: list[Json],
) -> None:
    block = picture(store, img())
    asked = [shown(message, block) for message in log]
    settings = settings_from(AnthropicSettings, {"provider": "p", "api_key": "k"})

    for end in range(len(asked) + 1):
        part = request(*asked[:end], tools=[LOOK])
        going_on = asyncio.run(route.prepare(part))
        fresh = asyncio.run(AnthropicMessagesRoute(settings, versions).prepare(part))

        assert orjson.dumps(going_on.body) == orjson.dumps(fresh.body)
