"""Where the store is: an option, the environment, or the user's own data directory."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from everfold.session.errors import StoreUrlError
from everfold.store.file_urls import file_url

VARIABLE = "EVERFOLD_STORE"
PROFILE = "everfold.toml"
_SECRET_OPTION = re.compile(r"(?i)\b((?:ssl)?password|passfile)=[^&\s]*")


def data_directory() -> Path:
    """Return the directory for everfold's data of this user; it may not exist yet."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "everfold"


def default_store() -> str:
    """Return the URL of the store that is used when none is named."""
    return file_url(data_directory() / "sessions.sqlite")


def store_url(*candidates: str | None, fallback: Callable[[], str | None] = lambda: None) -> str:
    """Return the first store that is named: by the candidates, the environment, the fallback, or the default.

    Text without a scheme is the path of an SQLite file.
    """
    named = (*candidates, os.environ.get(VARIABLE))
    text = next((each for each in named if each), None) or fallback()
    if text is None:
        return default_store()
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", text) else file_url(Path(text))


def file_of(url: str) -> Path | None:
    """Return the file of an SQLite store URL, None for every other store.

    Raises:
        StoreUrlError: it is no URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise StoreUrlError(f"{without_secrets(url)!r} is no URL of a store: {error}") from error
    name = unquote(parts.path.removeprefix("/"), errors="surrogateescape")
    if "\0" in name:
        raise StoreUrlError(f"{without_secrets(url)!r} names no store: no path holds a NUL")
    is_file = parts.scheme == "sqlite" and name not in {"", ":memory:"}
    return Path(os.path.abspath(name)) if is_file else None


def without_secrets(text: str, url: str | None = None) -> str:
    """Return text in which no password stands: not that of `url`, and none written in a URL.

    Text of errors may quote a URL as the user gave it.
    """
    for secret in _secrets(url):
        text = text.replace(secret, "***")
    text = re.sub(r"(?P<head>\w+://[^/\s:@]*):[^/\s@]*@", r"\g<head>:***@", text)
    return _SECRET_OPTION.sub(r"\1=***", text)


def shown_url(url: str) -> str:
    """Return a store URL as it may be printed."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return without_secrets(url)
    return without_secrets(urlunsplit(parts) if parts.password else url, url)


def _secrets(url: str | None) -> list[str]:
    try:
        password = urlsplit(url or "").password
    except ValueError:
        return []
    # A short one would blot out half of every message; the pattern catches it inside URLs.
    found = {password, unquote(password)} if password and len(password) > 3 else set()
    return sorted(found, key=len, reverse=True)
