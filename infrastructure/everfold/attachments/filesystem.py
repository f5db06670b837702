"""Attachments in a folder: one file each, in two levels of folders named by their digest.

    objects/ab/cd/<digest>           the bytes
    objects/ab/cd/<digest>.puts      as long as the bytes were put again
    versions/ab/cd/<digest>/         of one original: <key>.json, and <digest> of each version
    owners/ab/cd/<digest>/<digest>   which originals have this version
    tmp/                             files that are being written

Files have mode 0600, folders 0700. A file gets its name when it is whole and on the disk.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import orjson

from everfold.attachments.errors import (
    AttachmentCorruptError,
    AttachmentError,
    AttachmentMissingError,
)
from everfold.attachments.files import (
    append_mark,
    make_folder,
    names_in,
    read_file,
    sweep,
    sync_folder,
    translated,
    write_temporary,
)
from everfold.attachments.ids import PREFIX, AttachmentId, attachment_id, digest_of, id_of
from everfold.attachments.ports import PAGE_SIZE, Sizes, Version, checked_key
from everfold.session.errors import (
    ForeignDatabaseError,
    SchemaVersionError,
    StoreUnavailableError,
)

LAYOUT = 1
_MARK = "everfold-attachments"
_PUTS = ".puts"
_DIGEST_LENGTH = 64


class FileAttachments:
    """An `AttachmentStore` in a folder, for one machine or a shared file system.

    Args:
        root: the folder.
        create: make it with mode 0700 if it does not exist; else nothing is written before a put.

    Raises:
        ForeignDatabaseError: the folder holds `objects` that everfold did not make.
        SchemaVersionError: a newer everfold made it.
        StoreUnavailableError, StoreReadOnlyError: it cannot be used, or is not there to be opened.
    """

    def __init__(self, root: str | os.PathLike[str], *, create: bool = True) -> None:
        self._root = Path(root).absolute()
        self._tmp = self._root / "tmp"
        with translated(self._root):
            if create:
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._make_ours()
            self._check_layout()
            if create:
                sweep(make_folder(self._root, "tmp"))

    @property
    def root(self) -> Path:
        """The folder that holds everything."""
        return self._root

    def path(self, id_: str) -> Path:
        """Return where the bytes of an attachment are or would be, for tools that only read."""
        return self._entry("objects", digest_of(id_))

    def path_template(self) -> str:
        """Return `path` for every attachment: a template as `everfold.llm.access_paths` has it."""
        root = str(self._root.absolute()).replace("{", "{{").replace("}", "}}")
        return f"{root}/objects/{{first}}/{{second}}/{{digest}}"

    def put(self, data: bytes) -> AttachmentId:
        """As `AttachmentStore.put`."""
        return self.put_all([data])[0]

    def put_all(self, datas: Sequence[bytes]) -> list[AttachmentId]:
        """As `AttachmentStore.put_all`: no file gets its name before all are on the disk."""
        ids = [id_of(data) for data in datas]
        with translated(self._root), ExitStack() as cleaning:
            waiting: dict[AttachmentId, Path] = {}
            for id_, data in zip(ids, datas, strict=True):
                if id_ not in waiting and not self._holds(id_, data):
                    waiting[id_] = write_temporary(self._tmp, data)
                    cleaning.callback(waiting[id_].unlink, missing_ok=True)
            for id_ in ids:
                self._name(id_, waiting.pop(id_, None))
        return ids

    def read(self, attachment_id: str) -> bytes:
        """As `AttachmentStore.read`."""
        found = [path for path in self._places(attachment_id) if path.exists()]
        for path in found:
            with translated(path), suppress(FileNotFoundError):
                data = read_file(path)
                if id_of(data) == attachment_id:
                    return data
        if found:
            raise AttachmentCorruptError(attachment_id, str(found[0]), "its digest is another")
        raise AttachmentMissingError(attachment_id, str(self._root))

    def has(self, attachment_id: str) -> bool:
        """As `AttachmentStore.has`."""
        with translated(self._root):
            return any(path.is_file() for path in self._places(attachment_id))

    def delete(self, attachment_id: str) -> bool:
        """As `AttachmentStore.delete`."""
        path = self.path(attachment_id)
        with translated(path):
            was_there = path.exists()
            path.unlink(missing_ok=True)
            path.with_name(path.name + _PUTS).unlink(missing_ok=True)
            self._delete_versions(digest_of(attachment_id))
            if was_there:
                sync_folder(path.parent)
        return was_there

    def sizes(self) -> Sizes:
        """As `AttachmentStore.sizes`."""
        count = puts = logical = stored = 0
        with translated(self._root):
            for path in self._walk("objects", ""):
                size, repeats = _size(path), _size(path.with_name(path.name + _PUTS))
                count, puts = count + 1, puts + 1 + repeats
                logical, stored = logical + size * (1 + repeats), stored + size
            versions = sum(
                _size(folder / name)
                for folder in self._walk("versions", "")
                for name in names_in(folder)
                if len(name) == _DIGEST_LENGTH
            )
        return Sizes(count, puts, logical, stored, versions)

    def page(self, after: str | None = None, limit: int = PAGE_SIZE) -> list[AttachmentId]:
        """As `AttachmentStore.page`."""
        found: list[AttachmentId] = []
        with translated(self._root):
            for path in self._walk("objects", digest_of(after) if after else ""):
                if len(found) == limit:
                    break
                found.append(AttachmentId(PREFIX + path.name))
        return found

    def version(self, original_id: str, key: str) -> Version | None:
        """As `AttachmentStore.version`."""
        path = self._entry("versions", digest_of(original_id)) / f"{checked_key(key)}.json"
        try:
            with translated(path):
                text = read_file(path)
        except FileNotFoundError:
            return None
        return _version(text, original_id, path)

    def record_version(
        self, original_id: str, key: str, version: Version, data: bytes | None
    ) -> Version:
        """As `AttachmentStore.record_version`."""
        checked_key(key)
        digest = digest_of(original_id)
        while self.path(original_id).exists():
            # A deletion at the same time may remove a folder that was just made: look again.
            with suppress(FileNotFoundError), translated(self._root):
                folder = self._made("versions", digest, digest)
                if data is not None:
                    self._put_version(folder, original_id, version.attachment_id, data)
                self._link(folder / f"{key}.json", _record(version))
                recorded = self.version(original_id, key)
                if recorded is not None and self.path(original_id).exists():
                    return recorded
        with translated(self._root):
            self._delete_versions(digest)
        raise AttachmentMissingError(original_id, str(self._root))

    def _make_ours(self) -> None:
        mark = self._root / _MARK
        if mark.exists():
            return
        # The mark comes first: whoever sees objects without it, seen in this order, is elsewhere.
        if (self._root / "objects").exists() and not mark.exists():
            raise ForeignDatabaseError(
                f"{self._root} holds 'objects' that everfold did not make; name another folder"
            )
        self._link(mark, b"%d\n" % LAYOUT, make_folder(self._root, "tmp"))

    def _check_layout(self) -> None:
        mark = self._root / _MARK
        try:
            stored = read_file(mark)
        except FileNotFoundError as error:
            raise StoreUnavailableError(f"there are no attachments at {self._root}") from error
        if stored.strip() != b"%d" % LAYOUT:
            raise SchemaVersionError(
                f"{mark} says layout {stored[:20]!r}, this program knows {LAYOUT}; "
                "use a newer everfold"
            )

    def _entry(self, kind: str, digest: str) -> Path:
        return self._root / kind / digest[:2] / digest[2:4] / digest

    def _made(self, kind: str, digest: str, *names: str) -> Path:
        return make_folder(self._root, kind, digest[:2], digest[2:4], *names)

    def _places(self, id_: str) -> list[Path]:
        """Return where bytes with this id may be: its own file, then one for each owner."""
        digest = digest_of(id_)
        owners = names_in(self._entry("owners", digest))
        versions = [self._entry("versions", owner) / digest for owner in owners]
        return [self.path(id_), *versions]

    def _holds(self, id_: AttachmentId, data: bytes) -> bool:
        try:
            return read_file(self.path(id_)) == data
        except FileNotFoundError:
            return False

    def _name(self, id_: AttachmentId, temporary: Path | None) -> None:
        """Give a written file its name; without one, count the bytes as put once more."""
        path = self.path(id_)
        if temporary is None:
            append_mark(path.with_name(path.name + _PUTS))
            return
        folder = self._made("objects", digest_of(id_))
        os.replace(temporary, path)
        sync_folder(folder)

    def _put_version(
        self, folder: Path, original_id: str, version_id: AttachmentId, data: bytes
    ) -> None:
        if id_of(data) != attachment_id(version_id):
            raise AttachmentError(f"version {version_id} was given other bytes: {id_of(data)}")
        digest = digest_of(version_id)
        owners = self._made("owners", digest, digest)
        self._link(owners / digest_of(original_id), b"")
        os.replace(write_temporary(self._tmp, data), folder / digest)
        sync_folder(folder)

    def _link(self, path: Path, data: bytes, tmp: Path | None = None) -> None:
        """Make a file unless it is there: the first of several makers wins."""
        temporary = write_temporary(tmp or self._tmp, data)
        try:
            with suppress(FileExistsError):
                os.link(temporary, path)
                sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)

    def _delete_versions(self, digest: str) -> None:
        folder = self._entry("versions", digest)
        for name in names_in(folder):
            (folder / name).unlink(missing_ok=True)
            if len(name) == _DIGEST_LENGTH:
                owners = self._entry("owners", name)
                (owners / digest).unlink(missing_ok=True)
                _remove_if_empty(owners)
        _remove_if_empty(folder)

    def _walk(self, kind: str, after: str) -> Iterator[Path]:
        """Yield the entries named by a digest greater than `after`, in order."""
        top = self._root / kind
        for first in names_in(top):
            if first < after[:2]:
                continue
            for second in names_in(top / first):
                if first + second < after[:4]:
                    continue
                folder = top / first / second
                yield from (
                    folder / name
                    for name in names_in(folder)
                    if len(name) == _DIGEST_LENGTH and name > after
                )


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _record(version: Version) -> bytes:
    return orjson.dumps(
        {
            "attachmentId": version.attachment_id,
            "mediaType": version.media_type,
            "bytes": version.bytes,
            "width": version.width,
            "height": version.height,
        }
    )


def _version(text: bytes, original_id: str, path: Path) -> Version:
    try:
        record = orjson.loads(text)
        return Version(
            attachment_id(record["attachmentId"]),
            str(record["mediaType"]),
            int(record["bytes"]),
            int(record["width"]),
            int(record["height"]),
        )
    except (ValueError, KeyError, TypeError, AttachmentError) as error:
        raise AttachmentCorruptError(
            original_id, str(path), f"the record of a version is unreadable ({error})"
        ) from error
