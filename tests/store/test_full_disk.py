"""F1, the database half: a full disk stores a batch as a whole or not at all, and is no end."""

import os
import pwd
import resource
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from everfold.session.errors import StoreError, StoreFullError
from everfold.session.ports import SessionStore
from everfold.store.contract.rows import row, rows, versions
from everfold.store.urls import open_store
from tests.postgres import own_server, with_query
from tests.processes import PATIENCE_S, Worker

DATABASES = ["sqlite", "postgres"] if os.geteuid() == 0 else []
"""Only root may mount a small file system; for all others the limit on file sizes stands in."""

BATCH = 40
TEXT = "f" * 4_000


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """Yield a folder on a file system of its own that holds so much."""
    folder = Path(tempfile.mkdtemp(prefix="everfold-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def append_until_refused(store: SessionStore) -> tuple[int, str]:
    """Append batches until the store refuses; return the last stored version and the code."""
    version = 0
    while version < 100_000:
        try:
            store.append(rows("a", version + 1, version + BATCH, text=TEXT))
        except StoreError as error:
            return version, error.code
        version += BATCH
    return version, "never"


@pytest.fixture(params=DATABASES)
def filling(request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """A store's URL on a small disk, and a file that takes up some of it until it is deleted."""
    if request.param == "sqlite":
        with small_disk("3m") as disk:
            ballast = disk / "ballast"
            ballast.write_bytes(b"b" * 1_000_000)
            yield f"sqlite:///{disk / 'store.sqlite'}", ballast
        return
    with own_server() as server, small_disk("6m") as disk:
        space = disk / "space"
        space.mkdir()
        if server.system_user is not None:
            owner = pwd.getpwnam(server.system_user)
            os.chown(disk, owner.pw_uid, owner.pw_gid)
            os.chown(space, owner.pw_uid, owner.pw_gid)
            disk.parent.chmod(0o1777)
        server.psql(f"CREATE TABLESPACE small LOCATION '{space}';")
        ballast = disk / "ballast"
        ballast.write_bytes(b"b" * 2_000_000)
        options = "-c default_tablespace=small"
        yield with_query(server.get_uri(), schema="public", options=options), ballast


def test_f1_a_full_disk_refuses_the_batch_as_a_whole_and_goes_on_when_there_is_room(
    filling: tuple[str, Path],
) -> None:
    url, ballast = filling
    with open_store(url) as store:
        last, code = append_until_refused(store)

        assert code == StoreFullError.code
        assert versions(list(store.read("a"))) == list(range(1, last + 1))

        ballast.unlink()
        store.append(rows("a", last + 1, last + BATCH, text=TEXT))
        assert store.version("a") == last + BATCH

    with open_store(url) as again:
        assert versions(list(again.read("a"))) == list(range(1, last + BATCH + 1))


def append_below_a_limit(url: str, max_bytes: int) -> tuple[int, int]:
    """Append until the system lets no file grow further, then lift the limit and go on.

    Returns:
        the last version before the refusal, and at the end.
    """
    with open_store(url) as store:
        store.append([row("b", 1)])
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        last, _ = append_until_refused(store)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        store.append(rows("a", last + 1, last + BATCH, text=TEXT))
        return last, store.version("a")


def test_f1_a_file_that_may_not_grow_refuses_the_batch_as_a_whole(sqlite_url: str) -> None:
    last, end = Worker(append_below_a_limit, sqlite_url, 2_000_000).result()

    assert 0 < last < end
    with open_store(sqlite_url) as again:
        assert versions(list(again.read("a"))) == list(range(1, end + 1))


def die_below_a_limit(url: str, max_bytes: int, pipe: Connection) -> None:
    """Append until the system lets no file grow further, report the last version, and die."""
    with open_store(url) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        last, _ = append_until_refused(store)
        pipe.send(last)
        os.kill(os.getpid(), signal.SIGKILL)


def test_f1_a_writer_that_dies_on_a_full_disk_leaves_a_file_that_opens(sqlite_url: str) -> None:
    worker = Worker(die_below_a_limit, sqlite_url, 2_000_000, reports=True)
    last = worker.pipe.recv()
    worker.process.join(PATIENCE_S)

    with open_store(sqlite_url, read_only=True) as reader:
        assert versions(list(reader.read("a"))) == list(range(1, last + 1))
    with open_store(sqlite_url) as store:
        store.append(rows("a", last + 1, last + BATCH, text=TEXT))
        assert versions(list(store.read("a"))) == list(range(1, last + BATCH + 1))
