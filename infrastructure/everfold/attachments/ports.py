"""What a store of attachments does, whatever it is made of."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from everfold.attachments.errors import AttachmentError
from everfold.attachments.ids import AttachmentId

PAGE_SIZE = 1000
_KEY_FORM = re.compile(r"[a-z0-9-]{1,100}")


@dataclass(frozen=True, slots=True)
class Version:
    """One form of an image, fixed for ever once it is recorded.

    Attributes:
        attachment_id: what to give to `AttachmentStore.read`; the original's own id if it fits as it is.
        media_type: what the bytes are, as `image/jpeg`.
        bytes: their exact number, before any base64.
        width: in pixels.
        height: in pixels.
    """

    attachment_id: AttachmentId
    media_type: str
    bytes: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a store holds.

    Attributes:
        count: attachments, each once.
        put_count: how often they were put.
        logical_bytes: what that would take if every put were stored.
        stored_bytes: what the attachments take.
        version_bytes: what their request versions take beside them.
    """

    count: int
    put_count: int
    logical_bytes: int
    stored_bytes: int
    version_bytes: int


class AttachmentStore(Protocol):
    """Bytes by the SHA-256 of their content, and the request versions made of them.

    Safe for several threads and several processes at once. Failures of the medium are the
    `StoreError` classes of `everfold.session.errors`.
    """

    def put(self, data: bytes) -> AttachmentId:
        """Store `data` durably and return its id; bytes that are there already are kept once.

        Damaged bytes under the same id are replaced.
        """
        ...

    def put_all(self, datas: Sequence[bytes]) -> list[AttachmentId]:
        """Store several, all or none, and return their ids in order."""
        ...

    def read(self, attachment_id: str) -> bytes:
        """Return the bytes of an attachment or of a version, checked against the id.

        Raises:
            AttachmentMissingError: there are none.
            AttachmentCorruptError: they are not those that were put.
        """
        ...

    def has(self, attachment_id: str) -> bool:
        """Tell whether bytes are stored under this id, without checking them."""
        ...

    def delete(self, attachment_id: str) -> bool:
        """Remove an attachment and every version made of it; tell whether it was there.

        A version is removed with its original only.
        """
        ...

    def sizes(self) -> Sizes:
        """Return what the store holds; it looks at every entry."""
        ...

    def page(self, after: str | None = None, limit: int = PAGE_SIZE) -> list[AttachmentId]:
        """Return up to `limit` ids in ascending order, from the first greater than `after` on.

        Versions are not listed.
        """
        ...

    def version(self, original_id: str, key: str) -> Version | None:
        """Return the version recorded for an original under this key, without reading its bytes."""
        ...

    def record_version(
        self, original_id: str, key: str, version: Version, data: bytes | None
    ) -> Version:
        """Record a version for ever, unless one is recorded; return the one that is.

        Args:
            original_id: the image it was made of.
            key: 1 to 100 of `a-z`, `0-9` and `-`.
            version: what to record.
            data: its bytes; None if they are the original's.

        Raises:
            AttachmentMissingError: the original is not stored.
        """
        ...


def every_id(store: AttachmentStore, page_size: int = PAGE_SIZE) -> Iterator[AttachmentId]:
    """Yield the id of every attachment, in ascending order, a page at a time."""
    page = store.page(None, page_size)
    while page:
        yield from page
        page = store.page(page[-1], page_size)


def checked_key(key: str) -> str:
    """Return a version's key.

    Raises:
        AttachmentError: it has another form than 1 to 100 of `a-z`, `0-9` and `-`.
    """
    if _KEY_FORM.fullmatch(key) is None:
        raise AttachmentError(f"{key!r:.120} cannot be a version's key: use a-z, 0-9 and -")
    return key
