"""The routes that run the same tests, each by the name of its wire form."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from everfold.attachments.versions import RequestVersions
from everfold.llm.route import Route
from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute
from everfold.routes.openai_responses import OpenAiResponsesRoute, ResponsesSettings
from everfold.routes.settings import settings_from
from everfold.routes.uploads import FileUploads
from tests.providers.strict_fake import StrictFake
from tests.routes.anthropic_kit import messages_route

KEY = "sk-test-0000000000"
Make = Callable[..., Route]


def chat_route(fake: StrictFake, versions: RequestVersions, _folder: Path, **more: Any) -> Route:
    """Return a chat completions route to the fake."""
    settings = {"provider": "p", "base_url": fake.base_url, "api_key": KEY, **more}
    return OpenAiChatRoute(settings_from(ChatSettings, settings), versions)


def responses_route(
    fake: StrictFake, versions: RequestVersions, folder: Path, **more: Any
) -> Route:
    """Return a Responses route to the fake, with files unless `has_files` is False."""
    settings = {"provider": "p", "base_url": fake.base_url, "api_key": KEY, **more}
    return OpenAiResponsesRoute(
        settings_from(ResponsesSettings, settings), versions, FileUploads(folder)
    )


def inline_responses_route(
    fake: StrictFake, versions: RequestVersions, folder: Path, **more: Any
) -> Route:
    """Return a Responses route to the fake that sends pictures inline."""
    return responses_route(fake, versions, folder, has_files=False, **more)


WIRES: dict[str, Make] = {
    "chat": chat_route,
    "messages": messages_route,
    "responses": inline_responses_route,
}
"""Every wire whose pictures travel inline."""
