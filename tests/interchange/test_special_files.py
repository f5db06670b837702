"""Sources that are no plain session file: pipes, devices, other programs' files."""

import bz2
import gzip
import io
import lzma
import os
import socket
import sqlite3
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.importing import ImportResult
from everfold.session.ports import SessionStore
from tests.interchange.files import compressed
from tests.interchange.logs import plain_turns

Take = Callable[..., ImportResult]
PATIENCE_S = 60.0


def refused(take: Take, store: SessionStore, source: object) -> ImportRefusedError:
    """Import a source that is refused, and return how; nothing is stored."""
    with pytest.raises(ImportRefusedError) as caught:
        take(source)
    assert list(store.streams()) == []
    return caught.value


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.fixture
def writer(pipe: Path) -> Iterator[int]:
    """A descriptor of the pipe for writing, open before anybody reads."""
    descriptor = os.open(pipe, os.O_RDWR)
    yield descriptor
    with suppress(OSError):
        os.close(descriptor)


def times_open(path: Path) -> int:
    """Return how many descriptors of this process lead to a file."""
    count = 0
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            count += os.path.samestat(os.fstat(int(name)), path.stat())
    return count


def write_when_read(pipe: Path, writer: int, content: bytes) -> None:
    """Write once the pipe is open for reading too, and close it."""
    while times_open(pipe) < 2:
        pass
    with os.fdopen(writer, "wb") as file:
        file.write(content)


@pytest.mark.parametrize("pack", [bytes, compressed])
def test_a_named_pipe_is_read_to_its_end(
    pipe: Path, writer: int, pack: Callable[[bytes], bytes], take: Take
) -> None:
    content = pack(plain_turns())
    thread = threading.Thread(target=write_when_read, args=(pipe, writer, content))
    thread.start()

    result = take(pipe)

    thread.join(PATIENCE_S)
    assert result.event_count == plain_turns().count(b"\n") - 1


def test_a_named_pipe_that_nobody_writes_is_refused_at_once(
    pipe: Path, store: SessionStore, take: Take
) -> None:
    error = refused(take, store, pipe)

    assert (error.code, error.reason) == ("file", f"{pipe} is a pipe that nobody writes to")


def test_a_device_is_no_session_file(store: SessionStore, take: Take) -> None:
    error = refused(take, store, Path(os.devnull))

    assert (error.code, error.reason) == ("file", "/dev/null is no regular file and no pipe")


def test_a_socket_is_no_session_file(tmp_path: Path, store: SessionStore, take: Take) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))

        error = refused(take, store, path)

    assert error.code == "file"
    assert str(path) in str(error)


def test_a_folder_is_no_session_file(tmp_path: Path, store: SessionStore, take: Take) -> None:
    error = refused(take, store, tmp_path)

    assert (error.code, error.reason) == (
        "file",
        f"{tmp_path} cannot be read: Is a directory",
    )


def zipped(content: bytes) -> bytes:
    """Return a ZIP archive with one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("session.jsonl", content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("pack", "reason"),
    [
        (gzip.compress, "the file is compressed with gzip; decompress it first"),
        (bz2.compress, "the file is compressed with bzip2; decompress it first"),
        (lzma.compress, "the file is compressed with xz; decompress it first"),
        (zipped, "the file is a ZIP archive; unpack it first"),
    ],
)
@pytest.mark.parametrize("wrap", [bytes, compressed])
def test_another_compression_is_named(
    pack: Callable[[bytes], bytes],
    wrap: Callable[[bytes], bytes],
    reason: str,
    store: SessionStore,
    take: Take,
) -> None:
    error = refused(take, store, wrap(pack(plain_turns())))

    assert (error.line, error.code, error.reason) == (1, "compression", reason)


def test_a_database_is_named(tmp_path: Path, store: SessionStore, take: Take) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE recipes (name)")

    error = refused(take, store, path)

    assert (error.line, error.code) == (1, "json")
    assert "the file is an SQLite database, no session file" in str(error)


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x7fELF\2\1\1\0\0\0\0", b"%PDF-1.7\n%", b"Dear diary\n"],
)
def test_what_is_no_json_is_called_no_session_file(
    content: bytes, store: SessionStore, take: Take
) -> None:
    error = refused(take, store, content)

    assert error.line == 1
    assert "this is no session file" in str(error)
