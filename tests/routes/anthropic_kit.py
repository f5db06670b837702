"""Streams of the Messages API that StrictFake does not write by itself, and routes to it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everfold.attachments.versions import RequestVersions
from everfold.llm.route import Route
from everfold.routes.anthropic_messages import AnthropicMessagesRoute, AnthropicSettings
from everfold.routes.settings import settings_from
from tests.providers.answers import Answer, Refuse
from tests.providers.strict_fake import StrictFake
from tests.routes.talk import Talk, Talking

KEY = "sk-test-0000000000"


def events(*sent: Mapping[str, object], named: bool = True) -> Refuse:
    """Return a stream of exactly these events."""
    frames = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
        for event in sent
    ]
    return raw("".join(frames))


def raw(text: str) -> Refuse:
    """Return a stream of exactly this text."""
    return Refuse(200, text.encode(), {"Content-Type": "text/event-stream"})


def refused_amid(kind: str, message: str) -> Answer:
    """Return an answer that turns into an error halfway."""
    return Answer(error={"type": "error", "error": {"type": kind, "message": message}})


def claude(fake: StrictFake, versions: RequestVersions, talking: Talking, **more: Any) -> Talk:
    """Return a talk with the fake's Messages API."""
    return talking(messages_route(fake, versions, Path(), **more))


def messages_route(
    fake: StrictFake, versions: RequestVersions, _folder: Path, **more: Any
) -> Route:
    """Return a route to the fake's Messages API, for tests that run on every wire."""
    settings = {"provider": "p", "base_url": fake.url, "api_key": KEY, **more}
    return AnthropicMessagesRoute(settings_from(AnthropicSettings, settings), versions)
