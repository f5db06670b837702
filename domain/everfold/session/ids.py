"""Identifiers of a session, and the one conversion between seq and stream version."""

from typing import NewType

from everfold.session.errors import IdError

SessionId = NewType("SessionId", str)
Seq = NewType("Seq", int)

MAX_ID_BYTES = 200
HEADER_VERSION = 1
"""Stream version of the header row; the event with seq 0 has the next one."""


def version_of(seq: int) -> int:
    """Return the stream version that holds the event with this seq (versions count from 1, seqs from 0)."""
    return seq + HEADER_VERSION + 1


def seq_of(version: int) -> int:
    """Return the seq of the event stored at this stream version; -1 for the header."""
    return version - HEADER_VERSION - 1


def session_id(text: object) -> SessionId:
    """Return `text` as a session id.

    Raises:
        IdError: not text, empty, over 200 UTF-8 bytes, `.` or `..`, or holding a path
            separator, a control character or a lone surrogate.
    """
    if not isinstance(text, str):
        raise IdError(text, f"it is {type(text).__name__}, not text")
    reason = _fault(text)
    if reason is not None:
        raise IdError(text, reason)
    return SessionId(text)


def _fault(text: str) -> str | None:
    if not text:
        return "it is empty"
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        return f"character {error.start} is a lone surrogate"
    if size > MAX_ID_BYTES:
        return f"it is {size} bytes long, {MAX_ID_BYTES} is the most"
    if text in {".", ".."}:
        return "it names a directory"
    for position, character in enumerate(text):
        if character in "/\\":
            return f"character {position} is a path separator"
        if ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0:
            return f"character {position} is a control character"
    return None
