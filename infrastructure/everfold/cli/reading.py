"""Reading what may be damaged: an error names the session and the event, the prefix is still shown."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from everfold.audit.walking import Walk
from everfold.host.sessions import Sessions
from everfold.session.errors import (
    CorruptStreamError,
    LosslessError,
    SessionError,
    SessionNotFoundError,
)
from everfold.session.events import Recorded
from everfold.session.ids import HEADER_VERSION, version_of
from everfold.session.ids import session_id as checked_id
from everfold.session.ports import SessionStore
from everfold.session.session import Session

T = TypeVar("T")

_DAMAGE = (LosslessError, ValueError, TypeError, KeyError, AttributeError)
"""What decoding a damaged row may raise."""


def check_session(store: SessionStore, session_id: str) -> None:
    """Refuse the id of a session that is not in the store.

    Raises:
        IdError: it cannot be one.
        SessionNotFoundError: there is no such session.
    """
    if store.version(checked_id(session_id)) < HEADER_VERSION:
        raise SessionNotFoundError(session_id)


def load(sessions: Sessions, session_id: str, at: int | None = None) -> Session:
    """Return a session as it is now, or as it was after the event `at`.

    Raises:
        CorruptStreamError: a row is damaged; it names the first one.
        SessionError: there is no such session or event, or the log cannot be folded here.
    """
    check_session(sessions.store, session_id)
    try:
        return sessions.load(session_id, at=at)
    except _DAMAGE as error:
        raise _first_damage(sessions, session_id, at) or error from error


def _first_damage(sessions: Sessions, session_id: str, at: int | None) -> SessionError | None:
    upto = None if at is None else version_of(at)
    walk = Walk(sessions.store, session_id, sessions.composition, upto=upto)
    for _step in walk:
        pass
    if not walk.findings:
        return None
    first = walk.findings[0]
    return CorruptStreamError(session_id, first.seq, first.message)


def decoded(
    session_id: str, rows: Iterable[Recorded], read: Callable[[Recorded], T]
) -> Iterator[T]:
    """Yield what `read` makes of each row, up to the first damaged one.

    Raises:
        CorruptStreamError: a row cannot be decoded; all before it were yielded.
    """
    for row in rows:
        with damage_at(session_id, row.seq):
            value = read(row)
        yield value


@contextmanager
def damage_at(session_id: str, seq: int) -> Iterator[None]:
    """Name session and event in the error that a damaged row raises."""
    try:
        yield
    except _DAMAGE as error:
        raise CorruptStreamError(session_id, seq, str(error)) from error
