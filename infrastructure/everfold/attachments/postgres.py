"""Attachments in PostgreSQL, for hosts on several machines."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from everfold.attachments.errors import (
    AttachmentCorruptError,
    AttachmentError,
    AttachmentMissingError,
)
from everfold.attachments.ids import PREFIX, AttachmentId, digest_of, id_of
from everfold.attachments.ports import PAGE_SIZE, Sizes, Version, checked_key
from everfold.session.errors import StoreUrlError

if TYPE_CHECKING:
    from everfold.attachments.postgres_connections import Connection, Connections

# The server compares digests, so that bytes that are there already are not sent again.
_COUNT = """UPDATE attachment_objects SET puts = puts + 1
    WHERE digest = %(digest)b AND sha256(data) = digest"""
_INSERT = """INSERT INTO attachment_objects (digest, size, puts, data)
    VALUES (%(digest)b, %(size)s, 1, %(data)b)
    ON CONFLICT (digest) DO UPDATE
    SET puts = attachment_objects.puts + 1, size = excluded.size, data = excluded.data"""
_READ = "SELECT data FROM attachment_objects WHERE digest = %b"
_READ_VERSION = "SELECT data FROM attachment_version_bytes WHERE digest = %b"
_HAS = """SELECT EXISTS (SELECT FROM attachment_objects WHERE digest = %(digest)b)
    OR EXISTS (SELECT FROM attachment_version_bytes WHERE digest = %(digest)b)"""
_DELETE = "DELETE FROM attachment_objects WHERE digest = %b RETURNING 1"
_SIZES = """SELECT count(*), coalesce(sum(puts), 0)::bigint, coalesce(sum(size * puts), 0)::bigint,
    coalesce(sum(size), 0)::bigint,
    (SELECT coalesce(sum(size), 0)::bigint FROM attachment_version_bytes)
    FROM attachment_objects"""
_PAGE = "SELECT digest FROM attachment_objects WHERE digest > %b ORDER BY digest LIMIT %s"
_VERSION = """SELECT digest, media_type, size, width, height FROM attachment_versions
    WHERE original = %b AND key = %s"""
_RECORD = """INSERT INTO attachment_versions (original, key, digest, media_type, size, width, height)
    VALUES (%b, %s, %b, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING 1"""
_RECORD_BYTES = """INSERT INTO attachment_version_bytes (digest, original, size, data)
    VALUES (%b, %b, %s, %b) ON CONFLICT DO NOTHING"""


class PostgresAttachments:
    """An `AttachmentStore` in a schema of a PostgreSQL database (14 or later).

    Args:
        url: `postgresql://user@host/database`, with `?schema=` (default `everfold`),
            `lock_timeout_s=` and `pool_size=`; it may be the session store's own.
        create: bring the schema to this program's version; else it must have it.

    Raises:
        StoreUrlError: the URL is not understood, or the driver is not installed.
        StoreUnavailableError: the server does not answer, or there are no attachments to open.
        ForeignDatabaseError, SchemaVersionError: as their names say; nothing was touched.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._connections = _connections(url, create=create)
        self._name = self._connections.target.name

    def __enter__(self) -> "PostgresAttachments":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def put(self, data: bytes) -> AttachmentId:
        """As `AttachmentStore.put`."""
        return self.put_all([data])[0]

    def put_all(self, datas: Sequence[bytes]) -> list[AttachmentId]:
        """As `AttachmentStore.put_all`: one transaction."""
        ids = [id_of(data) for data in datas]
        with self._transaction() as connection:
            # In the order of the digests, so that two batches cannot wait for each other.
            for id_, data in sorted(zip(ids, datas, strict=True), key=lambda pair: pair[0]):
                values = {"digest": _raw(id_), "size": len(data), "data": data}
                if not connection.execute(_COUNT, {"digest": values["digest"]}).rowcount:
                    connection.execute(_INSERT, values)
        return ids

    def read(self, attachment_id: str) -> bytes:
        """As `AttachmentStore.read`."""
        digest, is_damaged = _raw(attachment_id), False
        for statement in (_READ, _READ_VERSION):
            for (data,) in self._rows(statement, (digest,)):
                if id_of(data) == attachment_id:
                    return bytes(data)
                is_damaged = True
        if is_damaged:
            raise AttachmentCorruptError(attachment_id, self._name, "its digest is another")
        raise AttachmentMissingError(attachment_id, self._name)

    def has(self, attachment_id: str) -> bool:
        """As `AttachmentStore.has`."""
        return bool(self._rows(_HAS, {"digest": _raw(attachment_id)})[0][0])

    def delete(self, attachment_id: str) -> bool:
        """As `AttachmentStore.delete`."""
        return bool(self._rows(_DELETE, (_raw(attachment_id),)))

    def sizes(self) -> Sizes:
        """As `AttachmentStore.sizes`."""
        return Sizes(*self._rows(_SIZES, ())[0])

    def page(self, after: str | None = None, limit: int = PAGE_SIZE) -> list[AttachmentId]:
        """As `AttachmentStore.page`."""
        first = _raw(after) if after is not None else b""
        return [_id(digest) for (digest,) in self._rows(_PAGE, (first, limit))]

    def version(self, original_id: str, key: str) -> Version | None:
        """As `AttachmentStore.version`."""
        rows = self._rows(_VERSION, (_raw(original_id), checked_key(key)))
        if not rows:
            return None
        digest, *facts = rows[0]
        return Version(_id(digest), *facts)

    def record_version(
        self, original_id: str, key: str, version: Version, data: bytes | None
    ) -> Version:
        """As `AttachmentStore.record_version`."""
        if data is not None and id_of(data) != version.attachment_id:
            raise AttachmentError(
                f"version {version.attachment_id} was given other bytes: {id_of(data)}"
            )
        self._record(original_id, checked_key(key), version, data)
        recorded = self.version(original_id, key)
        if recorded is None:
            raise AttachmentMissingError(original_id, self._name)
        return recorded

    def _record(self, original_id: str, key: str, version: Version, data: bytes | None) -> None:
        from everfold.attachments.postgres_connections import OriginalGoneError

        original, digest = _raw(original_id), _raw(version.attachment_id)
        facts = (version.media_type, version.bytes, version.width, version.height)
        try:
            with self._transaction() as connection:
                cursor = connection.execute(_RECORD, (original, key, digest, *facts))
                if cursor.fetchone() and data is not None:
                    connection.execute(_RECORD_BYTES, (digest, original, len(data), data))
        except OriginalGoneError as error:
            raise AttachmentMissingError(original_id, self._name) from error

    @contextmanager
    def _transaction(self) -> Iterator["Connection"]:
        with self._connections.using() as connection, connection.transaction():
            yield connection

    def _rows(
        self, statement: str, values: Sequence[object] | Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        with self._connections.using() as connection:
            cursor = connection.cursor(binary=True)
            return cursor.execute(statement.encode(), values).fetchall()


def _connections(url: str, *, create: bool) -> "Connections":
    try:
        from everfold.attachments import postgres_connections, postgres_schema
    except ImportError as error:
        raise StoreUrlError(
            f"PostgreSQL needs its driver ({error}); install it with: pip install 'everfold[postgres]'"
        ) from error
    connections = postgres_connections.Connections(postgres_connections.target_of(url))
    postgres_schema.prepare(connections, create=create)
    return connections


def _raw(id_: str) -> bytes:
    return bytes.fromhex(digest_of(id_))


def _id(digest: bytes) -> AttachmentId:
    return AttachmentId(PREFIX + digest.hex())
