"""Finding and reading profiles; every wrong key is named, with those that there are."""

from pathlib import Path
from typing import Any

import pytest

from everfold.profiles.adapters import check_profile
from everfold.profiles.errors import ProfileError
from everfold.profiles.loading import load_profile, shipped_names, stored_in
from everfold.profiles.opening import open_profile
from everfold.profiles.profile import profile_of

SHIPPED = [
    "anthropic",
    "deepseek",
    "ollama",
    "openai",
    "openai-responses",
    "openrouter",
    "replay",
    "scripted",
]
ROUTE = '[routes.scripted]\nadapter = "scripted"\nmodel = "m"\n'


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERFOLD_PROFILE", raising=False)


def written(tmp_path: Path, text: str, name: str = "everfold.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def checked(text: str, tmp_path: Path) -> None:
    check_profile(load_profile(str(written(tmp_path, text))))


def test_these_profiles_are_shipped() -> None:
    assert shipped_names() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_is_valid_and_says_what_it_is(name: str) -> None:
    profile = load_profile(name)

    check_profile(profile)

    assert profile.about.endswith(".")
    assert profile.route == name
    assert profile.settings().model.provider == name


@pytest.mark.parametrize("name", [name for name in SHIPPED if name not in ("replay", "scripted")])
def test_a_shipped_profile_of_a_vendor_names_the_variable_of_its_key(name: str) -> None:
    table = load_profile(name).table()

    assert table.get("api_key_env", "none for ollama").endswith(("_API_KEY", "ollama"))
    assert "api_key" not in table


def test_without_a_file_the_scripted_profile_is_taken() -> None:
    assert load_profile().name == "scripted"


def test_the_folders_file_is_taken_before_it(tmp_path: Path) -> None:
    written(tmp_path, 'about = "mine"\n' + ROUTE)

    assert load_profile().about == "mine"


def test_the_environments_profile_is_taken_before_the_folders_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, ROUTE)
    monkeypatch.setenv("EVERFOLD_PROFILE", "ollama")

    assert load_profile().name == "ollama"


def test_a_named_profile_is_taken_before_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERFOLD_PROFILE", "ollama")

    assert load_profile("deepseek").name == "deepseek"


def test_a_profile_lies_over_the_one_it_extends(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'extends = "openai"\nsystem_prompt = "Be brief."\n[routes.openai]\nmodel = "gpt-4.1"\n'
        "[routes.openai.limits]\ncontext_window = 9000\n",
    )

    profile = load_profile(str(path))

    check_profile(profile)
    assert profile.system_prompt == "Be brief."
    assert profile.settings().model.model == "gpt-4.1"
    assert profile.table()["api_key_env"] == "OPENAI_API_KEY"
    assert profile.table()["limits"] == {"context_window": 9000}


def test_a_profile_may_extend_a_file_beside_it(tmp_path: Path) -> None:
    written(tmp_path, ROUTE, "base.toml")
    (tmp_path / "deeper").mkdir()
    path = written(tmp_path / "deeper", 'extends = "../base.toml"\nabout = "deeper"\n')

    assert load_profile(str(path)).route == "scripted"


def test_profiles_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    written(tmp_path, 'extends = "b.toml"\n', "a.toml")
    written(tmp_path, 'extends = "a.toml"\n', "b.toml")

    with pytest.raises(ProfileError, match="leads in a ring"):
        load_profile("a.toml")


def test_a_relative_store_starts_at_the_profiles_folder(tmp_path: Path) -> None:
    written(tmp_path, 'store = "data/own.db"\n' + ROUTE)

    assert stored_in(tmp_path) == str(tmp_path / "data/own.db")


def test_a_store_with_a_scheme_is_left_as_it_is(tmp_path: Path) -> None:
    written(tmp_path, 'store = "postgresql://h/d"\n' + ROUTE)

    assert stored_in(tmp_path) == "postgresql://h/d"


def test_a_folder_without_a_profile_names_no_store(tmp_path: Path) -> None:
    assert stored_in(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "stroe = 'x'\n" + ROUTE,
            r"has no key 'stroe'; did you mean 'store'\? \(its keys: about, ",
        ),
        (ROUTE + "modle = 'x'\n", r"routes\.scripted\] has no key 'modle'"),
        (ROUTE + "[retry]\nmax = 1\n", r"\[retry\] has no key 'max'.*max_retries"),
        (ROUTE + "[agent]\nstep = 1\n", r"\[agent\] has no key 'step'; did you mean 'steps'"),
        (
            ROUTE + "replies = [{ txt = 'a' }]\n",
            r"replies\[0\] has no key 'txt'; did you mean 'text'",
        ),
        (ROUTE + "budget = { images = 1 }\n", r"budget has no key 'images'"),
        ("plugins = []\n[plugin.x]\na = 1\n" + ROUTE, r"\[plugin\] has no key 'x'"),
        ("[routes.a]\nmodel = 'm'\n", "names no adapter; adapter is one of openai-chat, "),
        ("[routes.a]\nadapter = 'x'\nmodel = 'm'\n", "names an adapter that there is not"),
        ("[routes.a]\nadapter = 'scripted'\n", "model: Field required"),
        ("about = 'x'\n", "has no route: give it a table"),
        ("route = 'b'\n" + ROUTE, "has no route 'b'; its routes: scripted"),
        (ROUTE + ROUTE.replace("scripted]", "b]"), "has 2 routes: say which one is asked"),
        ("store = 1\n" + ROUTE, "store: Input should be a valid string"),
        (
            ROUTE + "[retry]\nmax_retries = -1\n",
            "max_retries is -1; it must be a number that is 0 or more",
        ),
        (ROUTE + "[agent]\nsteps = 0\n", "steps is 0; it must be a number above 0"),
        (ROUTE + "[agent]\ngrace_s = nan\n", "grace_s is nan; it must be a number"),
        (ROUTE + "temperature = nan\n", "temperature: Input should be a finite number"),
        ("routes = 3\n", "routes: Input should be a valid"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ProfileError, match=reason):
        checked_whole(text, tmp_path)


def checked_whole(text: str, tmp_path: Path) -> None:
    profile = load_profile(str(written(tmp_path, text)))
    check_profile(profile)
    with open_profile(profile) as host:
        host.route()


def chat(**more: Any) -> dict[str, Any]:
    route = {"adapter": "openai-chat", "model": "m", "base_url": "http://127.0.0.1:9"}
    return {"routes": {"a": {**route, **more}}}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"bas_url": "x"}, r"has no key 'bas_url'; did you mean 'base_url'\?"),
        ({"api_key": "sk-test-1"}, "keys do not belong into files"),
        ({"headers": {"Authorization": "sk-test-1"}}, "headers_env = { Authorization"),
        ({"headers": {"X-Api-Key": "sk-test-1"}}, "name the environment variable"),
        ({"limits": {"inlin": {}}}, "limits has no key 'inlin'; did you mean 'inline'"),
        ({"provider": "x"}, "has no key 'provider'"),
    ],
)
def test_a_route_of_a_vendor_names_what_is_wrong_and_shows_no_value(
    more: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ProfileError, match=reason) as caught:
        check_profile(profile_of(chat(**more), "mine", None))

    assert "sk-test-1" not in str(caught.value)


def test_a_file_that_is_not_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"is not TOML: .*line 1"):
        checked("a = = 1", tmp_path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(ProfileError, match="is not TOML"):
        load_profile(str(path))


def test_a_huge_file_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="is it a profile"):
        checked("#" * 1_000_001, tmp_path)


@pytest.mark.parametrize("name", ["nowhere.toml", "no/where", "."])
def test_a_path_that_cannot_be_read_is_named(name: str) -> None:
    with pytest.raises(ProfileError, match=r"nowhere|no/where|there is no profile '\.'"):
        load_profile(name)


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(ProfileError, match="there is no profile 'opnai'; name one of anthropic"):
        load_profile("opnai")


def test_a_key_of_the_profile_below_goes_to_no_other_server(tmp_path: Path) -> None:
    text = 'extends = "openai"\n[routes.openai]\nbase_url = "http://127.0.0.1:9/v1"\n'
    (tmp_path / "silent.toml").write_text(text)
    (tmp_path / "named.toml").write_text(text + 'api_key_env = "PROXY_KEY"\n')

    silent = load_profile("silent.toml", folder=tmp_path).table("openai")
    named = load_profile("named.toml", folder=tmp_path).table("openai")

    assert "api_key_env" not in silent
    assert named["api_key_env"] == "PROXY_KEY"
    assert silent["model"] == named["model"] == load_profile("openai").table("openai")["model"]
