"""The folder: what lies there, who may read it, and what a failure leaves."""

import errno
import multiprocessing
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from everfold.attachments.admission import AdmissionLimits, Source, admit
from everfold.attachments.errors import AttachmentIdError
from everfold.attachments.files import STALE_AFTER_S, translated
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.ids import id_of
from everfold.attachments.ports import Version
from everfold.attachments.testing import BAD_IDS
from everfold.session.errors import (
    ForeignDatabaseError,
    SchemaVersionError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from tests.attachments.images import png_source


def tree(folder: Path) -> list[str]:
    """Return every path below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_file_lies_in_two_levels_of_folders(files: FileAttachments) -> None:
    digest = files.put(b"x").removeprefix("sha256:")

    path = files.root / "objects" / digest[:2] / digest[2:4] / digest
    assert path.read_bytes() == b"x"
    assert files.path(f"sha256:{digest}") == path


def test_nothing_temporary_stays_after_a_put(files: FileAttachments) -> None:
    files.put_all([b"x", b"y", b"x"])
    files.put(b"x")

    assert list((files.root / "tmp").iterdir()) == []


def test_i5_files_and_folders_are_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = FileAttachments(tmp_path / "attachments")
        id_ = store.put(b"original")
        store.put(b"original")
        store.record_version(id_, "k", Version(id_of(b"v"), "image/png", 1, 1, 1), b"v")
    finally:
        os.umask(before)

    modes = {
        (path.is_dir(), stat.S_IMODE(path.lstat().st_mode))
        for path in [store.root, *store.root.rglob("*")]
    }
    assert modes == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("bad", BAD_IDS)
def test_i1_an_id_is_never_a_path(files: FileAttachments, tmp_path: Path, bad: str) -> None:
    (tmp_path / "outside").write_bytes(b"keep")
    before = tree(tmp_path)

    for act in (files.read, files.has, files.delete, files.path):
        with pytest.raises(AttachmentIdError):
            act(bad)

    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["../../x", "..\\..\\x", "/etc/x", ".", "CON", "a\x00b", "n" * 300]
)
def test_i1_a_name_is_never_a_path(files: FileAttachments, tmp_path: Path, name: str) -> None:
    before = {path for path in tree(tmp_path) if not path.startswith("attachments/")}

    (ref,) = admit([Source(b"data", name)], files)

    assert {path for path in tree(tmp_path) if not path.startswith("attachments/")} == before
    assert files.read(ref["attachmentId"]) == b"data"
    assert "/" not in ref["name"]


def test_a_link_in_place_of_a_folder_is_not_followed(
    files: FileAttachments, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (files.root / "objects").symlink_to(outside)

    with pytest.raises(StoreUnavailableError, match="is not a folder"):
        files.put(b"x")

    assert list(outside.iterdir()) == []


def test_a_link_in_place_of_a_file_is_not_read(files: FileAttachments, tmp_path: Path) -> None:
    id_ = files.put(b"x")
    outside = tmp_path / "outside"
    outside.write_bytes(b"x")
    files.path(id_).unlink()
    files.path(id_).symlink_to(outside)

    with pytest.raises(StoreError):
        files.read(id_)


def test_what_a_killed_writer_left_is_removed_at_the_next_opening(files: FileAttachments) -> None:
    stale, recent = (files.root / "tmp" / name for name in ("dead.part", "alive.part"))
    for path in (stale, recent):
        path.write_bytes(b"half")
    old = stale.stat().st_mtime - STALE_AFTER_S - 1
    os.utime(stale, (old, old))

    FileAttachments(files.root)

    assert not stale.exists()
    assert recent.exists()


def _in_child(act: Callable[[Path, Path], None], *paths: Path) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=act, args=paths)
    child.start()
    child.join(60)
    return child.exitcode


def _put_over_a_limit(root: Path, report: Path) -> None:
    store = FileAttachments(root)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        store.put_all([b"small", b"x" * 5000])
    except StoreError as error:
        report.write_text(str(error))


def test_a_batch_that_cannot_be_written_leaves_nothing(
    files: FileAttachments, tmp_path: Path
) -> None:
    report = tmp_path / "report"

    assert _in_child(_put_over_a_limit, files.root, report) == 0

    assert str(files.root) in report.read_text()
    assert files.sizes().count == 0
    assert list((files.root / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFullError),
        (errno.EDQUOT, StoreFullError),
        (errno.EROFS, StoreReadOnlyError),
        (errno.EACCES, StoreReadOnlyError),
        (errno.EIO, StoreUnavailableError),
    ],
)
def test_the_medium_s_errors_are_a_store_s(
    tmp_path: Path, number: int, kind: type[StoreError]
) -> None:
    with pytest.raises(kind, match=str(tmp_path)), translated(tmp_path):
        raise OSError(number, os.strerror(number))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()

    with pytest.raises(ForeignDatabaseError, match="did not make"):
        FileAttachments(tmp_path)

    assert tree(tmp_path) == ["objects"]


def test_a_newer_layout_is_refused(files: FileAttachments) -> None:
    (files.root / "everfold-attachments").write_bytes(b"2\n")

    with pytest.raises(SchemaVersionError, match="newer everfold"):
        FileAttachments(files.root)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StoreUnavailableError, match="file"):
        FileAttachments(tmp_path / "file")


def test_foreign_files_among_the_objects_are_not_listed(files: FileAttachments) -> None:
    id_ = files.put(b"x")
    (files.path(id_).parent / "README").write_bytes(b"not ours")
    (files.root / "objects" / "zz").mkdir()

    assert files.page() == [id_]
    assert files.sizes().stored_bytes == 1


def test_a_batch_that_the_store_cannot_keep_is_not_admitted(
    files: FileAttachments, tmp_path: Path
) -> None:
    (files.root / "objects").symlink_to(tmp_path)

    with pytest.raises(StoreUnavailableError):
        admit([png_source(), Source(b"note")], files, AdmissionLimits())

    assert list((files.root / "tmp").iterdir()) == []


def test_a_folder_that_is_not_there_is_not_made_for_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="there are no attachments at"):
        FileAttachments(tmp_path / "none", create=False)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_opened_for_reading_has_what_was_put(files: FileAttachments) -> None:
    id_ = files.put(b"x")

    reading = FileAttachments(files.root, create=False)

    assert reading.has(id_)
    assert reading.read(id_) == b"x"
