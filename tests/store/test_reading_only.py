"""Reading a store where nothing may be written: another's folder, a file without rights, a copy of a live one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from everfold.session.errors import StoreError, StoreReadOnlyError
from everfold.store.contract.follower import Follower
from everfold.store.contract.rows import rows, versions
from everfold.store.urls import open_store
from tests.processes import Worker
from tests.raw import path_of

LOCKED, OPEN = 0o555, 0o777


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can reach."""
    with tempfile.TemporaryDirectory(prefix="everfold-reading-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


def lock(folder: Path, mode: int = LOCKED) -> None:
    """Leave everybody nothing but the right to read the folder's files."""
    for each in folder.iterdir():
        each.chmod(0o444)
    folder.chmod(mode)


def become_nobody() -> None:
    """Give up every right that root has."""
    with open_store("sqlite:///:memory:"):  # what is imported late may not be readable later
        pass
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65_534)
        os.setuid(65_534)


def read_as_nobody(url: str) -> list[int] | StoreError:
    """Return the versions of the stream `a` as somebody without rights reads them, or the refusal."""
    become_nobody()
    try:
        with open_store(url, create=False, read_only=True) as store:
            return versions(list(store.read("a")))
    except StoreError as error:
        return error


def stored(folder: Path) -> str:
    """Store three rows in a file of the folder; return its URL."""
    url = f"sqlite:///{folder}/store.sqlite"
    with open_store(url) as store:
        store.append(rows("a", 1, 3))
    return url


def copied(folder: Path, *suffixes: str) -> str:
    """Store three rows and copy the files of the live store; return the copy's URL."""
    original = folder / "original"
    original.mkdir()
    url = stored(original)
    with open_store(url) as store:
        store.append(rows("a", 4, 5))
        for suffix in ("", *suffixes):
            shutil.copy(f"{path_of(url)}{suffix}", f"{folder}/store.sqlite{suffix}")
    shutil.rmtree(original)
    return f"sqlite:///{folder}/store.sqlite"


@pytest.mark.parametrize("mode", [LOCKED, OPEN])
def test_a_closed_store_is_read_without_rights_and_no_file_is_left_behind(
    folder: Path, mode: int
) -> None:
    url = stored(folder)
    lock(folder, mode)
    names = sorted(each.name for each in folder.iterdir())

    found = Worker(read_as_nobody, url).result()

    assert found == [1, 2, 3]
    assert sorted(each.name for each in folder.iterdir()) == names


def test_the_log_of_changes_is_read_where_nothing_may_be_written(folder: Path) -> None:
    url = copied(folder, "-wal", "-shm")
    lock(folder)

    assert Worker(read_as_nobody, url).result() == [1, 2, 3, 4, 5]


def test_a_log_of_changes_that_cannot_be_read_is_not_passed_over(folder: Path) -> None:
    url = copied(folder, "-wal")
    lock(folder)

    refusal = Worker(read_as_nobody, url).result()

    assert isinstance(refusal, StoreReadOnlyError)
    assert "store.sqlite-wal holds newer events" in str(refusal)
    assert "copy both files to a folder that may be written" in str(refusal)


def read_twice(url: str, pipe: Connection) -> object:
    """Read as somebody without rights, report, and read again when the test has written."""
    become_nobody()
    with open_store(url, create=False, read_only=True) as store, Follower(store) as follower:
        pipe.send(versions(list(store.read("a"))))
        follower.wait_for(5)
        return versions(list(store.read("a")))


def test_a_reader_without_rights_sees_what_others_store(folder: Path) -> None:
    url = stored(folder)
    folder.chmod(LOCKED)
    path_of(url).chmod(0o644)
    reader = Worker(read_twice, url, reports=True)
    assert reader.pipe.recv() == [1, 2, 3]

    folder.chmod(0o755)
    with open_store(url) as store:
        store.append(rows("a", 4, 5))

    assert reader.result() == [1, 2, 3, 4, 5]
