"""Text that both databases can hold: PostgreSQL keeps no NUL, and neither keeps lone surrogates."""

import re

from everfold.session.errors import StoreTextError

_BAD = re.compile("[\0\ud800-\udfff]")


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
