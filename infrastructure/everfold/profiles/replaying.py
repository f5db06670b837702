"""Opening the shipped `replay` profile for one recording."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from everfold.agent.settings import Limits
from everfold.llm.retrying import RetryPolicy
from everfold.profiles.adapters import REPLAY
from everfold.profiles.checking import validated
from everfold.profiles.loading import load_profile
from everfold.profiles.opening import OpenProfile, open_profile
from everfold.profiles.profile import Profile
from everfold.recordings.playing import Player
from everfold.recordings.recording import Recording
from everfold.recordings.replaying import Replay, replay

_CALL = ("model", "reasoning_effort", "temperature", "max_tokens", "stop")


@contextmanager
def open_recording(
    recording: Recording, *, store: str | None = None, keeps_time: bool = False
) -> Iterator[tuple[OpenProfile, Player]]:
    """Run a host as the `replay` profile says, with the plugins and settings of a recording.

    Args:
        store: URL; in memory if None.
        keeps_time: whether answers come in the recorded rhythm.

    Raises:
        ProfileError, PluginError: a recorded setting or plugin cannot be used here.
    """
    player = Player(recording, keeps_time=keeps_time)
    profile = profile_for(recording)
    with open_profile(profile, store=store or "sqlite://", routes=player.routes()) as host:
        yield host, player


async def replay_recording(
    recording: Recording, *, store: str | None = None, keeps_time: bool = False
) -> Replay:
    """Play a recording through the shipped composition and compare (R353, R356)."""
    with open_recording(recording, store=store, keeps_time=keeps_time) as (host, player):
        return await replay(recording, host, player)


def profile_for(recording: Recording) -> Profile:
    """Return the `replay` profile with what a recording says.

    Raises:
        ProfileError: a setting is unknown here.
    """
    model: dict[str, Any] = dict(recording.settings["model"])
    provider = str(model["provider"])
    call = {name: model[name] for name in _CALL if model.get(name) is not None}
    where = "the recording's settings"
    return replace(
        load_profile(REPLAY),
        system_prompt=recording.prompt,
        route=provider,
        routes={provider: {"adapter": REPLAY, **call}},
        plugins=tuple(recording.plugins),
        plugin_settings={name: own for name, own in recording.plugins.items() if own},
        retry=validated(RetryPolicy, recording.settings.get("retry", {}), where),
        limits=validated(Limits, recording.settings.get("limits", {}), where),
        access_path=recording.settings.get("access_path"),
    )
