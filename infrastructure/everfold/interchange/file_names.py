"""File names for sessions: safe for every id, distinct for distinct ids, on every file system.

The escaping: lower-case ASCII letters, digits, `-`, `_` and `.` stand for themselves, every other
byte of the id's UTF-8 is `%` and two lower-case hex digits. The first character is escaped too
where the name would start with `-` or `.`, or be one that Windows keeps for devices (`con`, `nul`,
`com1`, …). So a name holds no capital letter and no letter with an accent: nothing is left that a
file system could fold together. It is undone by `session_id_of`.

An id whose escaped form is over 180 characters is cut and gets `~` and the SHA-256 of the id; then
only the header line inside the file tells the id.
"""

import hashlib
import re
from pathlib import PurePath
from urllib.parse import unquote_to_bytes

from everfold.session.errors import IdError
from everfold.session.ids import SessionId
from everfold.session.ids import session_id as checked_id

SUFFIX = ".v3.jsonl"
_MAX_STEM = 180
_DIGEST_MARK = "~"
_HEAD = _MAX_STEM - len(_DIGEST_MARK) - 64
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)")


def file_name(session_id: str) -> str:
    """Return the name of the file that a session is exported to, suffix included.

    Raises:
        IdError: the text cannot be a session id.
    """
    data = checked_id(session_id).encode()
    parts = [chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in data]
    if parts[0] in "-." or _RESERVED.match("".join(parts)):
        parts[0] = f"%{data[0]:02x}"
    stem = "".join(parts)
    if len(stem) > _MAX_STEM:
        stem = _cut(parts) + _DIGEST_MARK + hashlib.sha256(data).hexdigest()
    return stem + SUFFIX


def session_id_of(path: PurePath) -> SessionId | None:
    """Return the id that a name made by `file_name` stands for; None if it was cut, or is another's."""
    stem = path.name.removesuffix(SUFFIX)
    try:
        text = unquote_to_bytes(stem).decode()
        is_ours = file_name(text) == path.name
    except (ValueError, IdError):
        return None
    return SessionId(text) if is_ours else None


def _cut(parts: list[str]) -> str:
    head = ""
    for part in parts:
        if len(head) + len(part) > _HEAD:
            break
        head += part
    return head
