"""Text that both databases can hold: PostgreSQL keeps no NUL, and neither keeps lone surrogates."""

import re
from collections.abc import Sequence

from everfold.session.errors import StoreTextError

_BAD = re.compile("[\0\ud800-\udfff]")


def check_several(name: str, given: Sequence[str]) -> None:
    """Refuse one text where several are asked for: its letters would be taken for them.

    Raises:
        TypeError: it is one text; the message shows the list that is meant.
    """
    if isinstance(given, str):
        raise TypeError(f"{name} is one text; give a list: {name}=[{given!r}]")


def check_texts(*texts: str) -> None:
    """Refuse texts that a database cannot hold, before one takes them and the other does not.

    Raises:
        StoreTextError: one of them holds a NUL or a lone surrogate.
    """
    for text in texts:
        if text.isascii() and "\0" not in text:
            continue
        found = _BAD.search(text)
        if found is not None:
            what = "a NUL" if found.group() == "\0" else "a lone surrogate"
            raise StoreTextError(text, found.start(), what)
