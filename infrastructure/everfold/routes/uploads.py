"""Remembers which pictures a provider already holds, so that each is uploaded once (file mode)."""

import hashlib
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import orjson

from everfold.attachments.files import write_temporary
from everfold.attachments.ids import digest_of

log = logging.getLogger("everfold.routes")


class UploadBook(Protocol):
    """Ids of uploaded files by account and by the version that was uploaded; safe for several threads."""

    def find(self, account: str, version_id: str) -> str | None:
        """Return the id under which an account holds a version; None if it does not."""
        ...

    def note(self, account: str, version_id: str, file_id: str) -> str:
        """Remember an upload and return the id to use: the first one noted wins."""
        ...

    def forget(self, account: str, file_id: str) -> None:
        """Forget an upload that the provider no longer holds."""
        ...


class FileUploads:
    """An `UploadBook` in a folder, best one beside the attachments: `uploads/<account>/<digest>.json`.

    Args:
        root: the folder; made with mode 0700 when something is noted.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root).absolute() / "uploads"

    def find(self, account: str, version_id: str) -> str | None:
        """As `UploadBook.find`; a record that cannot be read counts as none."""
        return _noted(self._path(account, version_id))

    def note(self, account: str, version_id: str, file_id: str) -> str:
        """As `UploadBook.note`; what cannot be noted is used, and uploaded again another time."""
        try:
            return self._linked(self._path(account, version_id), version_id, file_id)
        except OSError as error:
            log.warning("an upload was not noted below %s: %s", self._root, error)
            return file_id

    def _linked(self, path: Path, version_id: str, file_id: str) -> str:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = orjson.dumps({"fileId": file_id, "versionId": version_id})
        temporary = write_temporary(path.parent, record)
        try:
            os.link(temporary, path)
        except FileExistsError:
            noted = _noted(path)
            if noted is not None:
                return noted
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        return file_id

    def forget(self, account: str, file_id: str) -> None:
        """As `UploadBook.forget`; it looks at every upload of the account."""
        for path in self._root.joinpath(account).glob("*.json"):
            if _noted(path) == file_id:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _path(self, account: str, version_id: str) -> Path:
        return self._root / account / f"{digest_of(version_id)}.json"


def _noted(path: Path) -> str | None:
    """Return the id in a record, None if there is no record or it cannot be read."""
    try:
        record = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    file_id = record.get("fileId") if isinstance(record, dict) else None
    return file_id if isinstance(file_id, str) else None


class MemoryUploads:
    """An `UploadBook` of this process alone."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}

    def find(self, account: str, version_id: str) -> str | None:
        """As `UploadBook.find`."""
        return self._ids.get((account, version_id))

    def note(self, account: str, version_id: str, file_id: str) -> str:
        """As `UploadBook.note`."""
        return self._ids.setdefault((account, version_id), file_id)

    def forget(self, account: str, file_id: str) -> None:
        """As `UploadBook.forget`."""
        for key, noted in list(self._ids.items()):
            if key[0] == account and noted == file_id:
                self._ids.pop(key, None)


def account_of(base_url: str, key: str | None) -> str:
    """Return a name for an account at a server; no key can be read out of it."""
    return hashlib.sha256(f"{base_url}\0{key or ''}".encode()).hexdigest()[:24]
