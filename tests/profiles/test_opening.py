"""Hosts that run as profiles say: stores, attachments, keys, plugins, tools."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from everfold.agent.results import TurnResult
from everfold.agent.tools import ImageData
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.postgres import PostgresAttachments
from everfold.plugins.plugin import Mount, Plugin, PluginError
from everfold.plugins.waterfalls import PreStepAnswer
from everfold.profiles.errors import MissingKeyError, ProfileError
from everfold.profiles.loading import load_profile
from everfold.profiles.mounting import mounted
from everfold.profiles.opening import OpenProfile, open_profile
from everfold.profiles.profile import Profile, profile_of
from everfold.projections.compaction.plugin import ModelHost
from everfold.recordings.files import read_recording
from tests.providers.answers import Refuse
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake, strict_fake

KEY = "sk-test-0000111122223333"


def profile(**more: Any) -> Profile:
    routes = {"scripted": {"adapter": "scripted", "model": "m", **more.pop("route", {})}}
    return profile_of({"routes": routes, **more}, "mine", None)


def provided(fake: StrictFake, **more: Any) -> Profile:
    route = {
        "adapter": "openai-chat",
        "model": "fake-1",
        "base_url": fake.base_url,
        "api_key_env": "FAKE_KEY",
        **more,
    }
    return profile_of({"routes": {"fake": route}}, "mine", None)


def ask(host: OpenProfile, *content: Any) -> Any:
    async def asked() -> Any:
        agent = host.agent(host.sessions.create().id)
        result = await agent.ask(content or ["hello"])
        await host.disconnect()
        return result

    return asyncio.run(asyncio.wait_for(asked(), 60))


def test_a_profile_without_a_store_runs_in_memory() -> None:
    with open_profile(profile()) as host:
        result = ask(host)

    assert result.text == "You said 'hello'; I see 0 image(s)."


def test_a_store_named_as_a_file_lies_in_the_folder_of_the_profile(tmp_path: Path) -> None:
    written = tmp_path / "a b#c.toml"
    written.write_text('extends = "scripted"\nstore = "a b#c.db"\n')

    with open_profile(load_profile(str(written))) as host:
        ask(host)

    assert (tmp_path / "a b#c.db").is_file()
    assert (tmp_path / "a b#c.attachments").is_dir()


def test_attachments_lie_beside_the_store(tmp_path: Path) -> None:
    with open_profile(
        profile(store=str(tmp_path / "a.db")), store=f"sqlite:///{tmp_path / 'a.db'}"
    ) as host:
        ref = host.admit([ImageData(img(300), "a.png")])[0]

        assert FileAttachments(tmp_path / "a.attachments").has(ref["attachmentId"])


def test_attachments_lie_where_the_profile_says(tmp_path: Path) -> None:
    with open_profile(profile(attachments=str(tmp_path / "elsewhere"))) as host:
        host.admit([ImageData(img(300), "a.png")])

    assert FileAttachments(tmp_path / "elsewhere").sizes().count == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_process_uses_the_uploads_of_the_others(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
    with strict_fake() as fake:
        for _ in range(2):
            given = provided(fake, adapter="openai-responses")
            with open_profile(given, store=url, environ={"FAKE_KEY": KEY}) as host:
                ask(host, "look", ImageData(img(300), "a.png"))

        assert (len(fake.calls), fake.upload_count) == (2, 1)


def test_attachments_of_a_postgres_store_are_on_its_server(postgres_url: str) -> None:
    with open_profile(profile(), store=postgres_url) as host:
        ref = host.admit([ImageData(img(300), "a.png")])[0]
        result = ask(host, "look", {"type": "image", "attachment": ref})

    with PostgresAttachments(postgres_url) as store:
        assert store.has(ref["attachmentId"])
    assert result.text.endswith("1 image(s).")


def test_a_key_goes_to_the_provider_and_into_no_repr_error_or_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """I4."""
    caplog.set_level(logging.DEBUG)
    with strict_fake() as fake:
        fake.will(Refuse(403, f'{{"error": {{"message": "no {KEY}"}}}}'.encode()))
        opened = open_profile(
            provided(fake),
            store=f"sqlite:///{tmp_path / 'a.db'}",
            environ={"FAKE_KEY": f" {KEY}\n"},
        )
        with opened as host:
            result = ask(host)
            shown = repr((host, host.profile, host.means, host.route(), result))

    assert fake.last.headers["authorization"] == f"Bearer {KEY}"
    assert result.failure.code == "AUTH"
    assert KEY not in shown + caplog.text
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("a.db*"))


def test_a_key_that_the_profile_does_not_name_is_sent_to_no_other_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with strict_fake() as fake:
        made = provided(fake)
        table = {key: value for key, value in made.table().items() if key != "api_key_env"}
        with open_profile(profile_of({"routes": {"fake": table}}, "mine", None)) as host:
            ask(host)

        headers = fake.last.headers

    assert KEY not in str(headers)


def test_a_header_may_come_from_the_environment() -> None:
    with strict_fake() as fake:
        made = provided(fake, headers_env={"X-Team": "TEAM"}, headers={"X-Title": "everfold"})
        with open_profile(made, environ={"FAKE_KEY": KEY, "TEAM": "blue-9999"}) as host:
            ask(host)
            secrets = host.secrets

        headers = fake.last.headers

    assert (headers["x-team"], headers["x-title"]) == ("blue-9999", "everfold")
    assert secrets == [KEY, "blue-9999"]


@pytest.mark.parametrize("environ", [{}, {"FAKE_KEY": ""}, {"FAKE_KEY": "  "}])
def test_a_missing_key_names_its_variable_when_a_model_is_asked(environ: dict[str, str]) -> None:
    with (
        strict_fake() as fake,
        open_profile(provided(fake), environ=environ) as host,
        pytest.raises(MissingKeyError, match="set the environment variable FAKE_KEY"),
    ):
        host.agent("x")


def test_a_vendors_own_server_needs_a_named_key() -> None:
    table = {"routes": {"a": {"adapter": "anthropic", "model": "m"}}}

    with (
        open_profile(profile_of(table, "mine", None)) as host,
        pytest.raises(ProfileError, match="names no api_key_env"),
    ):
        host.route()


def test_a_route_is_made_once() -> None:
    with open_profile(profile()) as host:
        assert host.route() is host.route("scripted")


def test_the_replay_profile_says_that_it_needs_a_recording() -> None:
    table = {"routes": {"replay": {"adapter": "replay", "model": "m"}}}

    with (
        open_profile(profile_of(table, "mine", None)) as host,
        pytest.raises(ProfileError, match="recording = 'NAME or FILE'; without it only a replay"),
    ):
        host.route()


def replaying(**table: object) -> Profile:
    """Return a profile whose route answers from a recording."""
    route = {"adapter": "replay", "model": "m", **table}
    return profile_of({"routes": {"mine": route}}, "mine", None)


def test_a_profile_may_name_the_recording_that_answers() -> None:
    with open_profile(replaying(recording="plain-turn"), store="sqlite://") as host:
        agent = host.agent(host.sessions.create().id)

        async def talk() -> list[TurnResult]:
            return [await agent.ask("When?"), await agent.ask("Sure?"), await agent.ask("Well?")]

        first, second, third = asyncio.run(talk())

    assert (first.text, second.text, third.kind) == ("At 14:20.", "Yes.", "error")
    assert third.failure is not None
    assert third.failure.message == "the recording holds 2 request(s), this is one more"


def test_a_route_that_plays_a_recording_takes_what_the_recorded_model_took() -> None:
    recorded = read_recording("offload-and-retry").capabilities["fake"]["budget"]

    with open_profile(replaying(recording="offload-and-retry"), store="sqlite://") as host:
        takes = host.route().capabilities("m")

    assert takes.budget is not None
    assert (takes.budget.max_bytes, recorded["max_bytes"]) == (1200, 1200)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"recording": "nowhere"}, "the recording 'nowhere' cannot be read: .* shipped ones are"),
        ({"recording": 7}, "recording: Input should be a valid string"),
    ],
)
def test_a_recording_that_cannot_be_played_is_named(table: dict[str, object], reason: str) -> None:
    with (
        open_profile(replaying(**table), store="sqlite://") as host,
        pytest.raises(ProfileError, match=reason),
    ):
        host.route()


def test_limits_of_a_profile_hold() -> None:
    budget = {"max_images": 1, "count_quantum": 1, "max_bytes": 10_000, "byte_quantum": 1}
    with strict_fake() as fake:
        made = provided(fake, limits={"inline": budget, "context_window": 5000})
        with open_profile(made, environ={"FAKE_KEY": KEY}) as host:
            takes = host.route().capabilities("fake-1")

    assert takes.context_window == 5000
    assert takes.budget is not None
    assert takes.budget.max_images == 1


# Plugins.


def test_every_installed_plugin_acts_unless_the_profile_says_which() -> None:
    with open_profile(profile()) as host:
        every = [plugin.name for plugin in host.plugins]
    with open_profile(profile(plugins=["image-offload"])) as host:
        one = [plugin.name for plugin in host.plugins]
        known = set(host.sessions.composition.definitions)

    assert {"compaction", "image-offload", "tool-result-pruner"} <= set(every)
    assert one == ["image-offload"]
    assert "image/bring-back" in known


def test_a_plugin_is_set_as_the_profile_says() -> None:
    made = profile(plugin={"compaction": {"keep_tokens": 7}})

    with open_profile(made) as host:
        assert host.compactor().settings.keep_tokens == 7
        assert host.acting()["compaction"] == {"keep_tokens": 7}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"plugins": ["imag-offload"]}, "plugin 'imag-offload' is not installed; installed are: "),
        ({"plugin": {"nope": {}}}, "plugin 'nope' is not installed"),
        (
            {"plugin": {"image-offload": {"plan": True}}},
            "plugin 'image-offload' has no setting 'plan'",
        ),
        ({"plugin": {"compaction": {"threshold": "x"}}}, "plugin 'compaction' takes float"),
    ],
)
def test_a_plugin_that_cannot_be_used_refuses_the_start(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(PluginError, match=reason), open_profile(profile(**more)):
        pass


def plugin_of(name: str, calls: list[str], *, fails: bool = False) -> Plugin:
    async def before_step(_question: Any, ask_next: Any) -> PreStepAnswer:
        answer: PreStepAnswer = await ask_next()
        return answer

    def mount(host: Mount) -> None:
        calls.append(f"mount {name} {dict(host.settings)}")
        host.defer(lambda: calls.append(f"first of {name}"))
        host.defer(host.waterfalls.pre_step.register(name, before_step))
        host.defer(lambda: calls.append(f"last of {name}"))
        if fails:
            raise ZeroDivisionError("no")

    return Plugin(name, mount=mount)


def test_plugins_are_unmounted_in_reverse_order() -> None:
    calls: list[str] = []
    plugins = [plugin_of("a", calls), plugin_of("b", calls)]
    with open_profile(profile(plugins=[])) as host:
        with mounted(plugins, {"b": {"x": 1}}, host.waterfalls, host.sessions, host.route):
            joined = [name for name, _ in host.waterfalls.pre_step.handlers()]
        left = host.waterfalls.pre_step.handlers()

    assert joined == ["a", "b"]
    assert left == ()
    assert calls == [
        "mount a {}",
        "mount b {'x': 1}",
        "last of b",
        "first of b",
        "last of a",
        "first of a",
    ]


def test_a_plugin_that_fails_to_mount_is_named_and_all_is_undone() -> None:
    calls: list[str] = []
    plugins = [plugin_of("a", calls), plugin_of("b", calls, fails=True)]
    with open_profile(profile(plugins=[])) as host:
        with (
            pytest.raises(PluginError, match="plugin 'b' failed to mount: ZeroDivisionError: no"),
            mounted(plugins, {}, host.waterfalls, host.sessions, host.route),
        ):
            pass
        left = host.waterfalls.pre_step.handlers()

    assert left == ()
    assert calls[2:] == ["last of b", "first of b", "last of a", "first of a"]


def test_settings_for_a_plugin_that_has_none_are_refused() -> None:
    with (
        open_profile(profile(plugins=[])) as host,
        pytest.raises(ProfileError, match="plugin 'plain' has no settings: x"),
        mounted([Plugin("plain")], {"plain": {"x": 1}}, host.waterfalls, host.sessions, host.route),
    ):
        pass


def test_a_mount_lends_models_and_logs() -> None:
    seen: list[bool] = []
    plugin = Plugin("looks", mount=lambda host: seen.append(isinstance(host, ModelHost)))

    with (
        open_profile(profile(plugins=[])) as host,
        mounted([plugin], {}, host.waterfalls, host.sessions, host.route),
    ):
        pass

    assert seen == [True]


# Tools.


def test_an_access_path_that_leads_to_no_attachment_is_refused() -> None:
    with pytest.raises(
        ProfileError, match=r"profile 'mine': access path '/files/\{name\}' is the same"
    ):
        profile(access_path="/files/{name}")


def test_local_paths_want_attachments_in_files(postgres_url: str) -> None:
    with pytest.raises(ProfileError, match="the attachments are no files here"):  # noqa: SIM117
        with open_profile(profile(access_path="local"), store=postgres_url):
            raise AssertionError("it opened")
