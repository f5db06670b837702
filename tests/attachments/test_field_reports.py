"""Reports from the field about attachments: each case by its number."""

import hashlib
from typing import Any

import pytest

from everfold.attachments.admission import AdmissionLimits, Source, admit
from everfold.attachments.decoding import DecodeLimits
from everfold.attachments.errors import AdmissionError, AttachmentMissingError, VersionError
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions, VersionSpec
from tests.attachments.images import encoded, noise, opened, picture, png

ENCODED_LIMIT = 5_242_880
"""What a provider takes of one image, after base64."""


def as_base64(size: int) -> int:
    """Return the length of `size` bytes in base64."""
    return -(-size // 3) * 4


def old_row(store: FileAttachments, data: bytes, media_type: str) -> dict[str, Any]:
    """Return a reference that got into a log without passing admission."""
    return {"attachmentId": store.put(data), "mediaType": media_type, "bytes": len(data)}


def test_a1_an_oversized_picture_is_stored_in_a_size_that_providers_take(
    files: FileAttachments,
) -> None:
    data = encoded(noise(1400, 1400), "PNG")
    assert as_base64(len(data)) > ENCODED_LIMIT

    (ref,) = admit([Source(data, "big.png", "image/png")], files)

    assert as_base64(ref["bytes"]) <= ENCODED_LIMIT
    assert max(ref["width"], ref["height"]) <= 2000


def test_a1_an_oversized_picture_of_an_old_log_gets_a_version_that_fits(
    files: FileAttachments,
) -> None:
    ref = old_row(files, encoded(noise(400, 400), "PNG"), "image/png")

    version = RequestVersions(files).version(ref, VersionSpec(max_bytes=100_000))

    assert version.bytes <= 100_000


def test_a7_admission_stores_the_true_type(files: FileAttachments) -> None:
    sources = [
        Source(encoded(picture(), "JPEG"), media_type="image/png"),
        Source(encoded(picture(), "WEBP"), media_type="image/png"),
    ]

    refs = admit(sources, files)

    assert [ref["mediaType"] for ref in refs] == ["image/jpeg", "image/webp"]


def test_a7_an_old_row_with_a_false_type_is_sent_with_the_true_one(files: FileAttachments) -> None:
    data = encoded(picture(), "JPEG")
    ref = old_row(files, data, "image/png")

    version = RequestVersions(files).version(ref, VersionSpec())

    assert version.media_type == "image/jpeg"
    assert files.read(version.attachment_id) == data
    assert ref["mediaType"] == "image/png"


def test_a8_a_picture_that_no_provider_can_process_is_found_before_it_is_sent(
    files: FileAttachments,
) -> None:
    refs = [old_row(files, png(40 + index, 30), "image/png") for index in range(9)]
    refs[3] = old_row(files, png(200, 100)[:150], "image/png")
    versions = RequestVersions(files)

    with pytest.raises(VersionError, match=refs[3]["attachmentId"]):
        versions.version(refs[3], VersionSpec())

    good = [versions.version(ref, VersionSpec()) for ref in refs[:3] + refs[4:]]
    assert [version.width for version in good] == [40, 41, 42, 44, 45, 46, 47, 48]


def test_a9_one_bad_picture_of_six_reads_is_the_only_one_refused(files: FileAttachments) -> None:
    reads = [Source(encoded(noise(90, 100 + index), "PNG")) for index in range(5)]
    reads.append(Source(png(9000, 200), "panorama.png"))
    limits = AdmissionLimits(decode=DecodeLimits(max_edge=8000))

    outcomes = []
    for read in reads:
        try:
            outcomes.append(admit([read], files, limits)[0]["mediaType"])
        except AdmissionError as error:
            outcomes.append(str(error))

    assert outcomes[:5] == ["image/png"] * 5
    assert outcomes[5] == (
        "attachment 1 ('panorama.png'): it is 9000 x 200 pixels, 8000 on a side are the most"
    )


def test_a9_by_default_the_wide_picture_is_made_to_fit(files: FileAttachments) -> None:
    (ref,) = admit([Source(png(9000, 200))], files)

    assert (ref["width"], ref["height"]) == (2000, 44)
    assert ref["originalDimensions"] == {"width": 9000, "height": 200}


def test_e4_bytes_are_equal_at_each_step(files: FileAttachments) -> None:
    data = noise(1, 70_000, "L").tobytes()
    digest = hashlib.sha256(data).hexdigest()

    (ref,) = admit([Source(data, "random.bin")], files)
    reopened = FileAttachments(files.root)

    assert ref["attachmentId"] == f"sha256:{digest}"
    assert hashlib.sha256(reopened.read(ref["attachmentId"])).hexdigest() == digest


def test_e4_an_image_in_normal_form_is_sent_as_it_came(files: FileAttachments) -> None:
    data = encoded(noise(150, 150), "JPEG")
    (stored,) = admit([Source(data)], files)
    once = files.read(stored["attachmentId"])

    (again,) = admit([Source(once)], files)
    version = RequestVersions(files).version(again, VersionSpec("jpeg", 2000, ENCODED_LIMIT))

    assert version.attachment_id == again["attachmentId"] == stored["attachmentId"]
    assert opened(once).tobytes() == opened(data).tobytes()


def test_g4_forty_attachments_of_one_picture_are_stored_once(files: FileAttachments) -> None:
    source = Source(encoded(noise(400, 420), "PNG"), "shot.png")

    refs = [admit([source], FileAttachments(files.root))[0] for _ in range(40)]
    on_disk = sum(path.stat().st_size for path in files.root.rglob("*") if path.is_file())
    sizes = files.sizes()

    assert all(ref == refs[0] for ref in refs)
    assert sizes.stored_bytes == refs[0]["bytes"] > 500_000
    assert sizes.logical_bytes == 40 * sizes.stored_bytes
    assert on_disk < 1.5 * sizes.stored_bytes


def test_g4_tenants_with_their_own_stores_share_nothing(files: FileAttachments) -> None:
    other = FileAttachments(files.root.parent / "other")
    (ref,) = admit([Source(png())], files)

    with pytest.raises(AttachmentMissingError, match=ref["attachmentId"]):
        other.read(ref["attachmentId"])
