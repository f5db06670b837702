"""Files that are no session files, told by their first bytes."""

MAGIC_BYTES = 16
"""So many first bytes tell."""

_PACKED = (
    (b"\x1f\x8b", "is compressed with gzip; decompress it first"),
    (b"BZh", "is compressed with bzip2; decompress it first"),
    (b"\xfd7zXZ\0", "is compressed with xz; decompress it first"),
    (b"PK\x03\x04", "is a ZIP archive; unpack it first"),
)
_DATABASE = b"SQLite format 3\0"


def fault_of(head: bytes) -> tuple[str, str] | None:
    """Return why a file that begins so is no session file, and the code of that; None if it may be one."""
    for magic, what in _PACKED:
        if head.startswith(magic):
            return f"the file {what}", "compression"
    if head.startswith(_DATABASE):
        return "the file is an SQLite database, no session file", "json"
    return None
