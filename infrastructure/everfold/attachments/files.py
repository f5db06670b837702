"""Files that are whole or absent, private to their owner, and inside one folder."""

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from everfold.session.errors import StoreFullError, StoreReadOnlyError, StoreUnavailableError

STALE_AFTER_S = 3600
"""A temporary file that nobody wrote to for this long belongs to a writer that died."""

_FULL = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the operating system's errors into those of a store; a missing file stays what it is.

    Raises:
        StoreFullError, StoreReadOnlyError, StoreUnavailableError: as their names say.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        said = f"attachments at {path}: {error.strerror or error}"
        if error.errno in _FULL:
            raise StoreFullError(f"{said}; nothing was stored") from error
        if error.errno in _READ_ONLY:
            raise StoreReadOnlyError(said) from error
        raise StoreUnavailableError(said) from error


def make_folder(top: Path, *names: str) -> Path:
    """Return the folder `top/names…`, made with mode 0700 and durable; `top` must exist.

    Raises:
        StoreUnavailableError: something on the way is not a real folder (a link could lead elsewhere).
    """
    folder = top
    for name in names:
        folder = folder / name
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            sync_folder(folder.parent)
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise StoreUnavailableError(f"{folder} is not a folder; it was left alone")
    return folder


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_temporary(folder: Path, data: bytes) -> Path:
    """Write a new durable file of mode 0600 and return its path; on failure it is gone."""
    path = folder / f"{secrets.token_hex(16)}.part"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def read_file(path: Path) -> bytes:
    """Return a file's bytes; a link in its place is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def append_mark(path: Path) -> None:
    """Make a file one byte longer: a count that several writers can raise at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, b".")
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove the temporary files that dead writers left."""
    limit = time.time() - STALE_AFTER_S
    for path in folder.glob("*.part"):
        with suppress(FileNotFoundError):
            if path.lstat().st_mtime < limit:
                path.unlink()


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none if there is no such folder."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
