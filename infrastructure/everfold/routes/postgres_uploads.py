"""The book of uploaded pictures in PostgreSQL, which the hosts of several machines share."""

import logging
from collections.abc import Sequence
from typing import Any

from everfold.attachments.ids import digest_of
from everfold.attachments.postgres_connections import Connections, target_of
from everfold.session.errors import StoreError

log = logging.getLogger("everfold.routes")

_FIND = "SELECT file_id FROM attachment_uploads WHERE account = %s AND digest = %s"
_NOTE = """INSERT INTO attachment_uploads (account, digest, file_id) VALUES (%s, %s, %s)
    ON CONFLICT (account, digest) DO NOTHING"""
_FORGET = "DELETE FROM attachment_uploads WHERE account = %s AND file_id = %s"


class PostgresUploads:
    """An `UploadBook` in the schema of a `PostgresAttachments`, which makes its table.

    It connects when it is first asked.

    Args:
        url: as `PostgresAttachments` takes it.

    Raises:
        StoreUrlError: the URL is not understood.
    """

    def __init__(self, url: str) -> None:
        self._connections = Connections(target_of(url))

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def find(self, account: str, version_id: str) -> str | None:
        """As `UploadBook.find`; a book that cannot be read holds nothing."""
        try:
            rows = self._run(_FIND, (account, bytes.fromhex(digest_of(version_id))))
        except StoreError as error:
            log.warning("the book of uploads cannot be read: %s", error)
            return None
        return str(rows[0][0]) if rows else None

    def note(self, account: str, version_id: str, file_id: str) -> str:
        """As `UploadBook.note`; what cannot be noted is used, and uploaded again another time."""
        try:
            self._run(_NOTE, (account, bytes.fromhex(digest_of(version_id)), file_id))
        except StoreError as error:
            log.warning("an upload was not noted: %s", error)
            return file_id
        return self.find(account, version_id) or file_id

    def forget(self, account: str, file_id: str) -> None:
        """As `UploadBook.forget`."""
        try:
            self._run(_FORGET, (account, file_id))
        except StoreError as error:
            log.warning("an upload was not forgotten: %s", error)

    def _run(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._connections.using() as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description is not None else []
