"""Where a profile's attachments are: a folder, a PostgreSQL schema, or beside the store."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.ports import AttachmentStore
from everfold.routes.uploads import FileUploads, MemoryUploads, UploadBook

_SERVERS = ("postgresql", "postgres")


def attachments_of(store_url: str, named: str | None) -> str | None:
    """Return the place of a store's attachments: the named one, else the store's own.

    That is the server of a PostgreSQL store, and of an SQLite file a folder beside it,
    `NAME.attachments`; None for a store in memory.
    """
    if named is not None:
        return named
    parts = urlsplit(store_url)
    if parts.scheme in _SERVERS:
        return store_url
    name = unquote(parts.path.removeprefix("/"))
    if name in {"", ":memory:"}:
        return None
    file = Path(name).absolute()
    return str(file.with_name(f"{file.stem}.attachments"))


@contextmanager
def open_attachments(place: str | None) -> Iterator[AttachmentStore]:
    """Open a store of attachments; one that lasts as long as the block if there is no place.

    Raises:
        StoreError: it cannot be opened.
    """
    if place is None:
        with tempfile.TemporaryDirectory(prefix="everfold-attachments-") as folder:
            yield FileAttachments(folder)
    elif urlsplit(place).scheme in _SERVERS:
        from everfold.attachments.postgres import PostgresAttachments

        store = PostgresAttachments(place)
        try:
            yield store
        finally:
            store.close()
    else:
        yield FileAttachments(place)


@contextmanager
def open_uploads(place: str | None) -> Iterator[UploadBook]:
    """Open the book of uploaded pictures that belongs to a place of attachments, which is open."""
    if place is None:
        yield MemoryUploads()
    elif urlsplit(place).scheme in _SERVERS:
        from everfold.routes.postgres_uploads import PostgresUploads

        with closing(PostgresUploads(place)) as book:
            yield book
    else:
        yield FileUploads(place)
