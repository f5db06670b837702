"""Servers of one's own: their address is checked before anything is asked, and they get no key."""

import asyncio
from typing import Any

import pytest

from everfold.profiles.errors import ProfileError
from everfold.profiles.opening import open_profile
from everfold.profiles.profile import Profile, profile_of
from tests.providers.strict_fake import StrictFake, strict_fake

ADAPTERS = ["openai-chat", "openai-responses", "anthropic"]


def own(adapter: str, base_url: Any, **more: Any) -> Profile:
    route = {"adapter": adapter, "model": "m", "base_url": base_url, **more}
    return profile_of({"routes": {"own": route}}, "mine", None)


def headers_sent(fake: StrictFake, adapter: str, **more: Any) -> dict[str, str]:
    url = fake.url if adapter == "anthropic" else fake.base_url
    with open_profile(own(adapter, url, **more), environ={"SECRET": "mine-4321"}) as host:

        async def asked() -> str:
            result = await host.agent(host.sessions.create().id).ask("hello")
            await host.disconnect()
            return result.kind

        assert asyncio.run(asyncio.wait_for(asked(), 60)) == "completed"
    return fake.last.headers


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_server_without_a_named_key_is_sent_none(adapter: str) -> None:
    with strict_fake() as fake:
        headers = headers_sent(fake, adapter)

    assert "authorization" not in headers
    assert "x-api-key" not in headers


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", ["Authorization", "authorization"])
def test_a_header_of_ones_own_takes_the_place_of_the_key(adapter: str, name: str) -> None:
    with strict_fake() as fake:
        headers = headers_sent(fake, adapter, headers_env={name: "SECRET"})

    assert headers["authorization"] == "mine-4321"
    assert "x-api-key" not in headers


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(
    "url", ["notaurl", "localhost:8080/v1", "ftp://a/v1", "http://", "http://a:x/", "", 7]
)
def test_an_address_that_no_request_can_go_to_is_refused_unshown(adapter: str, url: object) -> None:
    with (
        pytest.raises(ProfileError, match=r"\[routes\.own\]: base_url is no URL") as refused,
        open_profile(own(adapter, url)),
    ):
        pass

    assert "localhost" not in str(refused.value)
