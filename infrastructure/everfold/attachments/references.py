"""Which attachments a log refers to: only ids of the form that everfold gives."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from everfold.attachments.errors import AttachmentIdError
from everfold.attachments.ids import AttachmentId, attachment_id
from everfold.session.events import Recorded

# Stored states have no spaces, and quotes inside a text are escaped: no text can look like a member.
_MEMBER = re.compile(rb'"attachmentId":"(sha256:[0-9a-f]{64})"')


class Holds(Protocol):
    """What can tell whether it has an attachment; each `AttachmentStore` can."""

    def has(self, attachment_id: str) -> bool:
        """Tell whether bytes are stored under this id, without checking them."""
        ...


def referred(rows: Iterable[Recorded]) -> Iterator[AttachmentId]:
    """Yield the attachments that stored events refer to anywhere in their data, each once."""
    seen: set[bytes] = set()
    for row in rows:
        for id_ in _MEMBER.findall(row.state):
            if id_ not in seen:
                seen.add(id_)
                yield AttachmentId(id_.decode())


def is_missing(block: Mapping[str, Any], held: Holds) -> bool:
    """Tell whether a block refers to an attachment that is not held.

    One that refers to none, or to something kept elsewhere, lacks nothing.
    """
    id_ = id_in(block.get("attachment"))
    return id_ is not None and not held.has(id_)


def id_in(reference: object) -> AttachmentId | None:
    """Return the id in a reference as it stands in a content block, None if it has none of ours."""
    try:
        return attachment_id(reference.get("attachmentId") if isinstance(reference, dict) else None)
    except AttachmentIdError:
        return None
