"""Store URLs of SQLite files; light enough for a program that only prints its help."""

import os
from pathlib import Path
from urllib.parse import quote


def file_url(path: Path) -> str:
    """Return the store URL of an SQLite file."""
    return "sqlite:///" + quote(os.fsencode(os.path.abspath(path)), safe="/\\:@+,=~ ")
