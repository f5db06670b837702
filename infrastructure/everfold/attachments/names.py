"""Names of attachments: shown to people and models, never used as a path."""

import unicodedata

MAX_NAME_BYTES = 255


def clean_name(name: str | None) -> str | None:
    """Return the last part of a file name or path as valid text on one line; None if nothing is left.

    Control characters and what is not valid Unicode become U+FFFD; at most 255 UTF-8 bytes stay,
    with the extension.
    """
    if name is None:
        return None
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    shown = "".join("\ufffd" if _is_unfit(character) else character for character in last)
    return _shortened(shown.strip()) or None


def _is_unfit(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, dot, extension = name.rpartition(".")
    end = dot + extension
    if not stem or len(end.encode()) > 20:
        stem, end = name, ""
    room = MAX_NAME_BYTES - len(end.encode())
    return stem.encode()[:room].decode(errors="ignore") + end
