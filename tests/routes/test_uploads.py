"""Which pictures an account holds already."""

from pathlib import Path

import pytest

from everfold.attachments.ids import id_of
from everfold.routes.uploads import FileUploads, MemoryUploads, UploadBook, account_of

ONE, TWO = id_of(b"one"), id_of(b"two")


@pytest.fixture(params=["files", "memory"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> UploadBook:
    return FileUploads(tmp_path) if request.param == "files" else MemoryUploads()


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
