"""What SQLite's errors mean to a caller of the store."""

import errno
import sqlite3

from everfold.session.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from everfold.store.write_turn import TurnTimeoutError

ERRORS = (sqlite3.Error, OSError, TurnTimeoutError)
"""What comes out of a database on SQLite when it fails."""


def translate(error: Exception, name: str) -> StoreError:
    """Return the store's error for one of `ERRORS`.

    Args:
        name: what to call the database.
    """
    if isinstance(error, TurnTimeoutError):
        return StoreBusyError(f"{name}: other writers had their turn for the whole wait")
    if isinstance(error, OSError):
        kind = _OS_MEANING.get(error.errno or 0, StoreUnavailableError)
        return kind(f"{name}: {error.strerror}")
    # Errors of the driver itself have no code.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    kind, reason = _MEANING.get(code, (StoreError, "SQLite refused"))
    return kind(f"{name}: {reason} ({error})")


_OS_MEANING: dict[int, type[StoreError]] = {
    errno.EACCES: StoreReadOnlyError,
    errno.EPERM: StoreReadOnlyError,
    errno.EROFS: StoreReadOnlyError,
    errno.ENOSPC: StoreFullError,
    errno.EDQUOT: StoreFullError,
}

_MEANING: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreBusyError, "another program held the database for the whole wait"),
    sqlite3.SQLITE_LOCKED: (StoreBusyError, "another connection holds the database"),
    sqlite3.SQLITE_READONLY: (
        StoreReadOnlyError,
        "the file or its folder may not be written; to read it, copy it to where it may",
    ),
    sqlite3.SQLITE_PERM: (StoreReadOnlyError, "access denied"),
    sqlite3.SQLITE_FULL: (StoreFullError, "the disk is full; nothing of this was stored"),
    sqlite3.SQLITE_IOERR: (StoreUnavailableError, "the disk cannot be read or written"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailableError, "the file cannot be opened"),
    sqlite3.SQLITE_CORRUPT: (StoreUnavailableError, "the file is damaged"),
    sqlite3.SQLITE_NOTADB: (StoreUnavailableError, "the file is damaged"),
}
