"""Looking at, making and opening SQLite files without harm to files that are not ours."""

import os
import sqlite3
import threading
import warnings
from pathlib import Path
from urllib.parse import quote

from everfold.session.errors import (
    ForeignDatabaseError,
    SchemaVersionError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from everfold.store.write_turn import HAS_FILE_LOCKS

APPLICATION_ID = 0x65764664
"""What SQLite's file header says of a file of ours ("evFd")."""

_creating = threading.Lock()


def uri_of(path: Path, **query: str) -> str:
    """Return the SQLite URI of a file."""
    options = "&".join(f"{name}={value}" for name, value in query.items())
    return f"file:{quote(os.fsencode(path))}?{options}"


FrozenMark = tuple[int, int, int]
"""What a file is recognised by while nobody writes it: its number, size and time of change."""


def frozen_mark(path: Path) -> FrozenMark | None:
    """Return the mark of a file that is best read as one that nobody writes; None for any other.

    SQLite reads a database with a WAL only where it may make a `-shm` file; and one that a reader
    without rights made would keep the writers out. Neither is needed if the file never changes.
    While there is no WAL nobody has it open for writing, so that holds for as long as the mark
    stays the same: whoever reads looks at it before and after.

    Raises:
        StoreReadOnlyError: the WAL holds something and cannot be read here; without it the file
            would look older than it is, or damaged.
    """
    is_folder_ours = _is_writable(path.parent)
    if is_folder_ours and _is_writable(path):
        return None
    wal_bytes, has_index = _size(f"{path}-wal"), os.path.exists(f"{path}-shm")
    if wal_bytes is None or (wal_bytes == 0 and not has_index):
        facts = path.stat()
        return facts.st_ino, facts.st_size, facts.st_mtime_ns
    if is_folder_ours or has_index:
        return None
    raise StoreReadOnlyError(
        f"{path}-wal holds newer events, and nothing may be written in {path.parent}, so SQLite "
        "cannot read them; copy both files to a folder that may be written"
    )


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def stored_schema_version(path: Path, *, is_ours: bool = False) -> int | None:
    """Return the schema version in a file's header, None if there is no database yet.

    The file is opened as an immutable one: no lock, no `-wal`, no `-shm`, no byte written. Through
    SQLite, for a plain open and close would drop the locks that this process holds on it.

    Args:
        is_ours: open it as a live database, with its WAL; a full disk leaves a file that cannot be
            understood without it.

    Raises:
        ForeignDatabaseError: the file is damaged, is not an SQLite database, or not one of ours.
        StoreUnavailableError: it is a directory, or may not be read.
    """
    if not path.exists():
        return None
    if not path.is_file():
        raise StoreUnavailableError(f"{path} is not a file")
    if path.stat().st_size == 0:
        return None
    return _header(path, {} if is_ours else {"immutable": "1"})


def _header(path: Path, how: dict[str, str]) -> int:
    try:
        connection = sqlite3.connect(uri_of(path, mode="ro", **how), uri=True)
        try:
            application_id = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        raise StoreUnavailableError(f"cannot open {path}: {error}") from error
    except sqlite3.DatabaseError as error:
        is_damaged = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT
        what = "is damaged" if is_damaged else "is not an SQLite database"
        raise ForeignDatabaseError(f"{path} {what}: {error}") from error
    if application_id != APPLICATION_ID:
        raise ForeignDatabaseError(
            f"{path} is an SQLite database of another program "
            f"(application id {application_id:#x}, everfold's is {APPLICATION_ID:#x})"
        )
    return int(version)


def refuse_newer(where: str, stored: int, known: int) -> None:
    """Raise if a schema is newer than this program.

    Raises:
        SchemaVersionError: it names both versions.
    """
    if stored > known:
        raise SchemaVersionError(
            f"{where} has schema version {stored}, this everfold knows versions up to {known}; "
            "install a newer everfold"
        )


def create_file(path: Path) -> None:
    """Make an empty file that only its owner may read, and the folders above it."""
    _make_folders(path.parent)
    # One thread at a time: while the new file is open here, no SQLite connection may use it.
    with _creating:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise StoreUnavailableError(f"cannot create {path}: {error.strerror}") from error


def _make_folders(folder: Path) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        try:
            each.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreUnavailableError(f"cannot create {each}: {error.strerror}") from error


def has_wal_reset_bug(version: tuple[int, int, int]) -> bool:
    """Return whether an SQLite version has the WAL-reset bug.

    SQLite's documentation (wal.html, "The WAL-reset bug") dates it from 3.7.0 to 3.51.2, fixed in
    3.51.3 and in the branch releases 3.50.7 and 3.44.6: two connections that write or checkpoint at
    the same instant may corrupt the file. `WriteTurn` never lets two of ours do that.
    """
    fixed_branch = {(3, 50): 7, (3, 44): 6}.get(version[:2])
    if fixed_branch is not None:
        return version[2] < fixed_branch
    return (3, 7, 0) <= version < (3, 51, 3)


def warn_of_wal_reset_bug() -> None:
    """Warn where neither SQLite nor the writers' turns keep the WAL-reset bug away."""
    if has_wal_reset_bug(sqlite3.sqlite_version_info) and not HAS_FILE_LOCKS:
        warnings.warn(
            f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug and this system has no file "
            "locks: let one process at a time write a store, or use SQLite 3.51.3 or later",
            RuntimeWarning,
            stacklevel=3,
        )
