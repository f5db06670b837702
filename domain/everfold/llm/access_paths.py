"""Where the tools of a model can read an attachment: a template that each attachment fills in.

The template in force is part of a request, and stands in the log. So the text that a model reads in
place of an image or a file can be made again from the log alone.
"""

from collections.abc import Mapping
from string import Formatter
from typing import Any
from urllib.parse import quote

from everfold.llm.placeholders import image_extension

_DIGEST_PREFIX = "sha256:"
_DIGEST_LENGTH = 64
_NAMING = frozenset(("id", "digest"))
FIELDS = ("id", "digest", "first", "second", "name", "extension")
"""What stands between braces: the id, `sha256:` and its digest; the digest; its first two digits, and
the two after them; the name, percent-encoded; the extension of an image's type, with its dot."""


class AccessPathError(ValueError):
    """A template that names no attachment, or a field that there is not."""

    code = "access-path"


def check_access_path(template: str) -> None:
    """Refuse a template that cannot say where an attachment is.

    Args:
        template: a path or a URL with fields in braces; two braces stand for one.

    Raises:
        AccessPathError: it is malformed, names a field that there is not, or neither id nor digest.
    """
    try:
        fields = [part[1:] for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise AccessPathError(f"access path {template!r}: {error}") from error
    for name, form, conversion in fields:
        if name not in FIELDS or form or conversion:
            raise AccessPathError(
                f"access path {template!r} has no field {name!r}; its fields: {', '.join(FIELDS)}"
            )
    if not any(name in _NAMING for name, *_ in fields):
        raise AccessPathError(
            f"access path {template!r} is the same for every attachment; put {{id}} or {{digest}} into it"
        )


def access_path(template: str | None, attachment: Mapping[str, Any]) -> str | None:
    """Return where an attachment can be read; None for nowhere.

    Args:
        template: as it stands in the log; one that cannot be used leads nowhere.
        attachment: its reference, which may be malformed.
    """
    digest = str(attachment.get("attachmentId")).removeprefix(_DIGEST_PREFIX)
    if template is None or len(digest) != _DIGEST_LENGTH or not digest.isalnum():
        return None
    try:
        check_access_path(template)
    except AccessPathError:
        return None
    extension = image_extension(attachment.get("mediaType"))
    return template.format(
        id=_DIGEST_PREFIX + digest,
        digest=digest,
        first=digest[:2],
        second=digest[2:4],
        name=_name(attachment.get("name"), digest + extension),
        extension=extension,
    )


def _name(name: object, otherwise: str) -> str:
    """Return a name as one part of a path; names come from users."""
    if not isinstance(name, str) or not name.strip("."):
        return otherwise
    return quote(name, safe="", errors="replace")
