"""What PostgreSQL's errors mean to a caller of the store."""

import psycopg

from everfold.session.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from everfold.store.backend import (
    AppendRefusedError,
    KeyTakenError,
    SourceShortError,
    StreamDeletedError,
    VersionGapError,
    VersionTakenError,
)

_REFUSALS: dict[str, type[AppendRefusedError]] = {
    "EF001": VersionTakenError,
    "EF002": VersionGapError,
    "EF003": StreamDeletedError,
    "EF004": KeyTakenError,
    "EF005": SourceShortError,
}

_MEANING: tuple[tuple[str, type[StoreError], str], ...] = (
    ("55P03", StoreBusyError, "another writer of the session did not end for the whole wait"),
    ("57014", StoreBusyError, "the statement was cancelled"),
    ("40", StoreBusyError, "the transaction was rolled back"),
    ("25006", StoreReadOnlyError, "it is open for reading only"),
    ("42501", StoreReadOnlyError, "the role may not do this"),
    ("53100", StoreFullError, "the disk is full; nothing of this was stored"),
    ("53", StoreUnavailableError, "the server is out of resources"),
    ("08", StoreUnavailableError, "the connection failed"),
    ("57P", StoreUnavailableError, "the server is shutting down or starting"),
    ("28", StoreUnavailableError, "the server refuses the login"),
    ("3D000", StoreUnavailableError, "there is no such database"),
    ("58", StoreUnavailableError, "the server cannot read or write its files"),
    ("XX", StoreUnavailableError, "the server's data are damaged"),
)


def refusal_of(error: psycopg.Error) -> AppendRefusedError | None:
    """Return the refusal that a function of the schema raised, None for any other error."""
    kind = _REFUSALS.get(error.sqlstate or "")
    if kind is not None:
        return kind(error.diag.message_detail or "", error.diag.message_primary or "")
    return None


def translate(error: Exception, name: str) -> StoreError:
    """Return the store's error for one of the driver's.

    Args:
        name: what to call the store.
    """
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    text = _words(error)
    for prefix, kind, reason in _MEANING:
        if state is not None and state.startswith(prefix):
            return kind(f"{name}: {reason} ({text})")
    if state is None and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return StoreUnavailableError(f"{name}: the server does not answer ({text})")
    return StoreError(f"{name}: PostgreSQL refused ({text})")


def _words(error: Exception) -> str:
    """Return what went wrong, without the lines of the functions that it went wrong in."""
    if not isinstance(error, psycopg.Error) or error.diag.message_primary is None:
        return str(error).strip()
    detail = error.diag.message_detail
    return error.diag.message_primary + (f": {detail}" if detail else "")


def is_lost_connection(error: Exception) -> bool:
    """Return whether the server may have carried out the statement without saying so.

    A server that says why it ends the connection (class 57P) may have committed before it was told to.
    """
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    state = error.sqlstate
    return state is None or state.startswith(("08", "57P"))
