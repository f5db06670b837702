"""Request versions: made once, then the same bytes for ever."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from everfold.attachments.admission import Source, admit
from everfold.attachments.errors import (
    AttachmentCorruptError,
    AttachmentError,
    AttachmentIdError,
    AttachmentMissingError,
    VersionError,
)
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.ids import id_of
from everfold.attachments.ports import Version
from everfold.attachments.versions import RequestVersions, VersionSpec
from tests.attachments.images import encoded, noise, opened, picture

SMALL = VersionSpec("jpeg", max_edge=80)


@pytest.fixture
def image(files: FileAttachments) -> dict[str, Any]:
    """The reference of an admitted image of 200 x 100 pixels."""
    (ref,) = admit([Source(encoded(picture(200, 100), "PNG"))], files)
    return ref


@pytest.mark.parametrize(
    ("spec", "media_type", "size"),
    [
        (VersionSpec("jpeg"), "image/jpeg", (200, 100)),
        (VersionSpec("webp", max_edge=50), "image/webp", (50, 25)),
        (VersionSpec("png", max_edge=100, max_bytes=10_000), "image/png", (100, 50)),
        (VersionSpec(max_edge=20), "image/png", (20, 10)),
    ],
)
def test_a_version_is_what_the_route_asked_for(
    files: FileAttachments,
    image: dict[str, Any],
    spec: VersionSpec,
    media_type: str,
    size: tuple[int, int],
) -> None:
    versions = RequestVersions(files)

    version = versions.version(image, spec)
    data = versions.read(version)

    assert (version.media_type, version.width, version.height) == (media_type, *size)
    assert version.bytes == len(data)
    assert version.attachment_id == id_of(data)
    assert opened(data).size == size


def test_an_image_that_fits_is_its_own_version(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    version = RequestVersions(files).version(image, VersionSpec("png", 200, image["bytes"]))

    assert version.attachment_id == image["attachmentId"]
    assert files.sizes().version_bytes == 0


@pytest.mark.parametrize("format_", ["png", "jpeg", "webp"])
def test_a_required_format_is_kept_when_bytes_are_few(files: FileAttachments, format_: Any) -> None:
    (ref,) = admit([Source(encoded(noise(200, 200), "PNG"))], files)

    version = RequestVersions(files).version(ref, VersionSpec(format_, max_bytes=8_000))

    assert version.media_type == f"image/{format_}"
    assert version.bytes <= 8_000


def test_a_recorded_version_is_served_without_being_made_again(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    # What another encoder would have made: it was sent, so it stays.
    data = encoded(picture(80, 40), "JPEG", quality=31)
    sent = Version(id_of(data), "image/jpeg", len(data), 80, 40)
    files.record_version(image["attachmentId"], SMALL.key, sent, data)

    version = RequestVersions(files).version(image, SMALL)

    assert version == sent
    assert RequestVersions(files).read(version) == data


def test_the_length_is_known_without_reading_any_bytes(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    versions = RequestVersions(files)
    made = versions.version(image, SMALL)
    files.path(image["attachmentId"]).write_bytes(b"damaged")

    assert versions.version(image, SMALL) == made
    assert versions.known(image, SMALL) == made


def test_a_version_that_was_never_made_is_not_known(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    assert RequestVersions(files).known(image, SMALL) is None


def test_damaged_bytes_of_a_version_are_refused(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    versions = RequestVersions(files)
    version = versions.version(image, SMALL)
    (path,) = files.root.glob(f"versions/*/*/*/{version.attachment_id.removeprefix('sha256:')}")
    path.write_bytes(b"\x00" + path.read_bytes()[1:])

    with pytest.raises(AttachmentCorruptError, match=version.attachment_id):
        versions.read(version)


def test_a_damaged_record_of_a_version_is_refused(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    RequestVersions(files).version(image, SMALL)
    (path,) = files.root.glob("versions/*/*/*/*.json")
    path.write_bytes(b'{"attachmentId": 5}')

    with pytest.raises(AttachmentCorruptError, match=image["attachmentId"]):
        RequestVersions(files).version(image, SMALL)


def test_the_version_of_an_absent_image_is_an_error_that_names_it(files: FileAttachments) -> None:
    absent = id_of(b"absent")

    with pytest.raises(AttachmentMissingError, match=absent):
        RequestVersions(files).version({"attachmentId": absent}, SMALL)


@pytest.mark.parametrize("ref", [{}, {"attachmentId": None}, {"attachmentId": "sha256:aa00"}])
def test_a_reference_without_an_id_is_refused(files: FileAttachments, ref: dict[str, Any]) -> None:
    with pytest.raises(AttachmentIdError):
        RequestVersions(files).version(ref, SMALL)


def test_a_version_that_cannot_fit_is_refused_and_nothing_is_recorded(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    spec = VersionSpec(max_bytes=40)

    with pytest.raises(VersionError, match="40 bytes"):
        RequestVersions(files).version(image, spec)

    assert files.version(image["attachmentId"], spec.key) is None


@pytest.mark.parametrize(
    "wrong", [{"format": "gif"}, {"max_edge": 0}, {"max_bytes": -1}, {"format": "../png"}]
)
def test_a_specification_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(AttachmentError):
        VersionSpec(**wrong)


def test_keys_of_specifications_never_change() -> None:
    assert VersionSpec().key == "any-any-any"
    assert VersionSpec("webp", 1568, 5_242_880).key == "webp-1568-5242880"


def _make(root: Path, ref: dict[str, Any]) -> Version:
    return RequestVersions(FileAttachments(root)).version(ref, SMALL)


def test_processes_that_make_one_at_once_serve_the_same_bytes(
    files: FileAttachments, image: dict[str, Any]
) -> None:
    context = multiprocessing.get_context("spawn")

    with context.Pool(4) as pool:
        made = pool.starmap(_make, [(files.root, image)] * 12)

    assert len(set(made)) == 1
    assert len(files.read(made[0].attachment_id)) == made[0].bytes
