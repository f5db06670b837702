"""Which pictures an account holds already."""

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everfold.attachments.ids import id_of
from everfold.attachments.postgres import PostgresAttachments
from everfold.routes.postgres_uploads import PostgresUploads
from everfold.routes.uploads import FileUploads, MemoryUploads, UploadBook, account_of

ONE, TWO = id_of(b"one"), id_of(b"two")


@pytest.fixture(params=["files", "memory", "postgres"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UploadBook]:
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        with PostgresAttachments(url), closing(PostgresUploads(url)) as kept:
            yield kept
    else:
        yield FileUploads(tmp_path) if request.param == "files" else MemoryUploads()


def test_an_upload_is_found_by_its_account_alone(book: UploadBook) -> None:
    book.note("a", ONE, "file-1")

    assert book.find("a", ONE) == "file-1"
    assert book.find("b", ONE) is None
    assert book.find("a", TWO) is None


def test_of_two_uploads_the_first_one_noted_is_used(book: UploadBook) -> None:
    assert book.note("a", ONE, "file-1") == "file-1"
    assert book.note("a", ONE, "file-2") == "file-1"


def test_a_forgotten_upload_makes_room_for_the_next(book: UploadBook) -> None:
    book.note("a", ONE, "file-1")
    book.note("a", TWO, "file-2")

    book.forget("a", "file-1")

    assert book.find("a", ONE) is None
    assert book.find("a", TWO) == "file-2"
    assert book.note("a", ONE, "file-3") == "file-3"


def test_forgetting_does_not_touch_an_id_that_only_starts_alike(book: UploadBook) -> None:
    book.note("a", ONE, "file-12")

    book.forget("a", "file-1")

    assert book.find("a", ONE) == "file-12"


def test_uploads_outlive_the_process(tmp_path: Path) -> None:
    FileUploads(tmp_path).note("a", ONE, "file-1")

    assert FileUploads(tmp_path).find("a", ONE) == "file-1"


def test_a_spoilt_record_is_replaced(tmp_path: Path) -> None:
    book = FileUploads(tmp_path)
    book.note("a", ONE, "file-1")
    (record,) = tmp_path.glob("uploads/a/*")
    record.write_bytes(b"{")

    assert book.find("a", ONE) is None
    assert book.note("a", ONE, "file-2") == "file-2"
    assert book.find("a", ONE) == "file-2"
    assert list(tmp_path.glob("uploads/a/*")) == [record]


def test_an_account_is_named_without_its_key() -> None:
    name = account_of("https://one.example", "sk-test-0000")

    assert "0000" not in name
    assert name != account_of("https://two.example", "sk-test-0000")
    assert name != account_of("https://one.example", "sk-test-1111")


def test_a_record_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    book = FileUploads(tmp_path)
    version = id_of(b"picture")
    book.note("account", version, "file-1")
    (record,) = tmp_path.rglob("*.json")
    record.unlink()
    record.mkdir()

    assert book.find("account", version) is None


def test_an_upload_that_cannot_be_noted_is_used_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "uploads").write_text("no folder")
    book = FileUploads(tmp_path)

    assert book.note("account", id_of(b"picture"), "file-1") == "file-1"
    book.forget("account", "file-1")


def test_a_record_that_is_not_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    FileUploads(tmp_path).note("account", id_of(b"picture"), "file-1")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_book_that_does_not_answer_keeps_no_picture_from_being_sent(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(PostgresUploads(postgres_url)) as book:
        assert book.find("a", ONE) is None
        assert book.note("a", ONE, "file-1") == "file-1"
        book.forget("a", "file-1")

    assert "the book of uploads cannot be read" in caplog.text
