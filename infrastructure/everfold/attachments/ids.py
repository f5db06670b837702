"""Ids of attachments: the SHA-256 of their bytes, so that equal bytes are one object."""

import hashlib
import re
from typing import NewType

from everfold.attachments.errors import AttachmentIdError

AttachmentId = NewType("AttachmentId", str)

PREFIX = "sha256:"
_FORM = re.compile(r"sha256:[0-9a-f]{64}")


def attachment_id(text: object) -> AttachmentId:
    """Return `text` as an attachment id.

    Raises:
        AttachmentIdError: it has another form; so no id can name a path.
    """
    if not isinstance(text, str) or _FORM.fullmatch(text) is None:
        raise AttachmentIdError(text)
    return AttachmentId(text)


def id_of(data: bytes) -> AttachmentId:
    """Return the id of these bytes."""
    return AttachmentId(PREFIX + hashlib.sha256(data).hexdigest())


def digest_of(id_: str) -> str:
    """Return the 64 hex digits of an id.

    Raises:
        AttachmentIdError: `id_` is not an attachment id.
    """
    return attachment_id(id_).removeprefix(PREFIX)
