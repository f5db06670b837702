"""Export of a session to a file in format version 3: page by page, whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from everfold.interchange.errors import ExportRefusedError
from everfold.interchange.file_names import file_name
from everfold.interchange.js_json import stringify
from everfold.interchange.log_reader import LINE_TYPE
from everfold.interchange.ranges import encode_ranges
from everfold.session.errors import CorruptStreamError, SessionError, SessionNotFoundError
from everfold.session.events import Recorded, topics_of
from everfold.session.frozen import Json
from everfold.session.ids import HEADER_VERSION, seq_of, version_of
from everfold.session.ids import session_id as checked_id
from everfold.session.ports import SessionStore
from everfold.session.session import header_of
from everfold.session.state import END_SEED, is_inherited_marker
from everfold.session.vocabulary import MESSAGE_TYPES

_FIRST_PAGE_ROWS = 64
_MAX_PAGE_ROWS = 1024
_PAGE_BYTES = 4 * 1024 * 1024
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK)
_END_SEED_TOPICS = topics_of(END_SEED)
_HEADER_ORDER = ("type", "version", "id", "createdAt", "cwd", "isSeeded", "delegationDepth")


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote.

    Attributes:
        path: the file; None if the caller gave an open one.
        event_count: events written, the header not counted, an added marker counted.
    """

    path: Path | None
    event_count: int


def export_session(
    store: SessionStore,
    session_id: str,
    out: Path | BinaryIO,
    *,
    upto_seq: int | None = None,
    overwrite: bool = False,
) -> ExportResult:
    """Write a session as JSONL, as of now; memory does not grow with the log.

    A file appears under its name only when it is complete and on disk; only its owner may read it.

    Args:
        out: a file to make, a folder to make one in (named by `file_names.file_name`), or an open
            binary file.
        upto_seq: the last event to write, -1 for none; the newest if None. What is readable of a
            damaged session can be saved so. If all of these came with a fork, the marker of a fork
            at this place follows them: without one no reader could take the file (R155, R339).
        overwrite: replace a file that is there; a symbolic link is replaced, never followed.

    Raises:
        SessionNotFoundError: there is no such session.
        CorruptStreamError: a row is missing or unreadable.
        ExportRefusedError: the file is there, or cannot be written.
    """
    stored = upto = store.version(checked_id(session_id))
    if stored == 0:
        raise SessionNotFoundError(session_id)
    if upto_seq is not None:
        upto = max(HEADER_VERSION, min(upto, version_of(upto_seq)))
    marker = _missing_marker(store, session_id, upto) if upto < stored else ()
    lines = chain(_lines(store, session_id, upto), marker)
    count = upto - HEADER_VERSION + len(marker)
    if not isinstance(out, Path):
        out.writelines(lines)
        return ExportResult(None, count)
    path = out / file_name(session_id) if out.is_dir() else out
    with _new_file(path, overwrite=overwrite) as file:
        file.writelines(lines)
    return ExportResult(path, count)


def header_line(created: Recorded) -> bytes:
    """Return the first line of a file, newline included, for the first row of a stream."""
    header = header_of(created)
    fields: dict[str, Json] = {"delegationDepth": 0, **header, "type": LINE_TYPE}
    known = {name: fields[name] for name in _HEADER_ORDER if name in fields}
    return stringify(known | fields) + b"\n"


def event_line(event: Recorded) -> bytes:
    """Return the line of an event, newline included."""
    record = event.record()
    sources = record.get("sourceEventSeqs")
    if isinstance(sources, list) and event.type in MESSAGE_TYPES:
        record["sourceEventSeqs"] = encode_ranges(sources)
    return stringify(record) + b"\n"


def _lines(store: SessionStore, session_id: str, upto: int) -> Iterator[bytes]:
    for row in _rows(store, session_id, upto):
        with _named_by_seq(row):
            line = header_line(row) if row.seq < 0 else event_line(row)
        yield line


@contextmanager
def _named_by_seq(row: Recorded) -> Iterator[None]:
    try:
        yield
    except CorruptStreamError:
        raise
    except (SessionError, ValueError, KeyError) as error:
        raise CorruptStreamError(row.originator_id, row.seq, str(error)) from error


def _missing_marker(store: SessionStore, session_id: str, upto: int) -> Sequence[bytes]:
    """Return the marker's line for a prefix that ends before the fork's own marker; else nothing."""
    for created in store.read_versions(session_id, [HEADER_VERSION]):
        with _named_by_seq(created):
            header = header_of(created)
            is_fork, time_ms = header["isSeeded"], header["createdAt"]
        cut = _cut_version(store, session_id) if is_fork else 0
        if cut is None or cut > upto:
            data = {"inherited": True}
            record = {"type": END_SEED, "seq": seq_of(upto) + 1, "time": time_ms, "data": data}
            return (stringify(record) + b"\n",)
    return ()


def _cut_version(store: SessionStore, session_id: str) -> int | None:
    """Return the version of the last readable marker that says inherited (R339)."""
    upto = None
    while True:
        try:
            row = store.last_of(session_id, _END_SEED_TOPICS, upto=upto)
            if row is None or is_inherited_marker(row.data):
                return None if row is None else row.originator_version
            upto = row.originator_version - 1
        except CorruptStreamError as error:
            upto = version_of(error.seq or 0) - 1


def _rows(store: SessionStore, session_id: str, upto: int) -> Iterator[Recorded]:
    version, page_rows = 0, _FIRST_PAGE_ROWS
    while version < upto:
        start, size = version, 0
        for row in store.read(session_id, after=start, upto=upto, limit=page_rows):
            if row.originator_version != version + 1:
                raise CorruptStreamError(session_id, seq_of(version + 1), "the row is missing")
            yield row
            version += 1
            size += len(row.state)
        if version == start:
            raise CorruptStreamError(session_id, seq_of(version + 1), "the row is missing")
        mean = max(1, size // (version - start))
        page_rows = min(_MAX_PAGE_ROWS, max(1, _PAGE_BYTES // mean))


@contextmanager
def _new_file(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Give a file that takes its name when the block ends well, and is gone when it does not."""
    if not overwrite and os.path.lexists(path):
        raise ExportRefusedError(f"{path} is there already; it was not overwritten")
    with _named_by_path(path):
        # mkstemp makes the file with mode 0600 and never opens one that is there.
        handle, name = tempfile.mkstemp(prefix=".everfold-", suffix=".part", dir=path.parent)
    part = Path(name)
    try:
        with _named_by_path(path):
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _publish(part, path, overwrite=overwrite)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _publish(part: Path, path: Path, *, overwrite: bool) -> None:
    if overwrite:
        part.replace(path)
    else:
        _publish_new(part, path)
    _sync_folder(path.parent)


def _publish_new(part: Path, path: Path) -> None:
    # A link, unlike a rename, fails where a file appeared in the meantime.
    try:
        path.hardlink_to(part)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Such a file system can only reserve the name first.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        part.replace(path)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _named_by_path(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExportRefusedError(f"{path} cannot be written: {error.strerror}") from error
