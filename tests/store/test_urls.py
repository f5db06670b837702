"""What a store URL may say, and what is said of one that cannot be understood."""

import os
from pathlib import Path

import pytest

from everfold.session.errors import StoreError, StoreUrlError
from everfold.store.contract.rows import row
from everfold.store.urls import open_store


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sessions.db",
        "mysql://host/db",
        "sqlite://host/sessions.db",
        "sqlite:///sessions%00.db",
        "sqlite:///sessions.db?mode=memory",
        "sqlite:///sessions.db?synchronous=sometimes",
        "sqlite:///sessions.db?lock_timeout_s=-1",
        "sqlite:///sessions.db?lock_timeout_s=soon",
        "sqlite:///sessions.db?pool_size=0",
        "sqlite:///sessions.db?pool_size=1&pool_size=2",
        "postgresql://host/db?schema=",
        "postgresql://host/db?no_such_parameter=1",
        "postgresql://host/db?schema=" + "x" * 64,
    ],
)
def test_a_url_that_is_not_understood_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreUrlError):
        open_store(url)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("query", ["schema=x", "lock_timeout_s=never", "port=none&schema=x"])
def test_no_message_shows_the_password_of_a_url(query: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(f"postgresql://user:s3cr3t-word@127.0.0.1:1/db?{query}")

    assert "s3cr3t-word" not in str(caught.value)
    assert "s3cr3t-word" not in repr(caught.value.__cause__)


def test_a_relative_path_is_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with open_store("sqlite:///folder/with%20space%23.sqlite") as store:
        store.append([row("a", 1)])

    assert (tmp_path / "folder" / "with space#.sqlite").is_file()


@pytest.mark.parametrize("synchronous", ["full", "normal", "off"])
def test_a_store_keeps_events_at_every_setting_of_synchronous(
    sqlite_url: str, synchronous: str
) -> None:
    url = f"{sqlite_url}?synchronous={synchronous}"
    with open_store(url) as store:
        store.append([row("a", 1)])

    with open_store(url) as again:
        assert again.version("a") == 1


def test_a_path_need_not_be_unicode(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/%FF.sqlite") as store:
        store.append([row("a", 1)])

    assert b"\xff.sqlite" in os.listdir(os.fsencode(tmp_path))
