"""Reads the file out of an upload."""

import re

_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')


def uploaded(content_type: str, body: bytes) -> bytes:
    """Return the bytes of the form field `file`.

    Raises:
        ValueError: there is no form, or it has none.
    """
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise ValueError(f"{content_type!r} is no form")
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.group(1).encode()):
        head, _, data = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            return data
    raise ValueError("the upload has no field 'file'")
