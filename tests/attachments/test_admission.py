"""The door: what is refused, what is kept as it is, and that a batch is one decision."""

from typing import Any

import pytest

from everfold.attachments.admission import AdmissionLimits, Notice, Source, admit
from everfold.attachments.decoding import DecodeLimits
from everfold.attachments.errors import AdmissionError, AttachmentError, Refusal
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.ids import id_of
from everfold.attachments.names import clean_name
from tests.attachments.images import (
    animated,
    bomb,
    encoded,
    noise,
    picture,
    png,
    png_source,
)

TRUNCATED = {
    "PNG": encoded(noise(60, 60), "PNG"),
    "JPEG": encoded(noise(60, 60), "JPEG"),
    "WEBP": encoded(noise(60, 60), "WEBP"),
    "GIF": encoded(noise(60, 60), "GIF"),
    "TIFF": encoded(noise(60, 60), "TIFF"),
    "BMP": encoded(noise(60, 60), "BMP"),
}


def refusals_of(
    sources: list[Source], store: FileAttachments, limits: AdmissionLimits | None = None
) -> tuple[Refusal, ...]:
    """Return why a batch is refused."""
    with pytest.raises(AdmissionError) as caught:
        admit(sources, store, limits)
    return caught.value.refusals


def test_an_image_reference_has_exactly_the_fields_of_the_format(files: FileAttachments) -> None:
    (plain, named) = admit([png_source(), png_source("a.png")], files)

    assert list(plain) == ["attachmentId", "mediaType", "bytes", "width", "height"]
    assert named == {**plain, "name": "a.png"}


def test_a_file_is_kept_verbatim(files: FileAttachments) -> None:
    data = b"%PDF-1.7\r\n\x00\xff"

    refs = admit([Source(data, "plan.pdf", "application/pdf"), Source(data)], files)

    assert refs == [
        {"attachmentId": id_of(data), "name": "plan.pdf", "bytes": 12},
        {"attachmentId": id_of(data), "name": "file", "bytes": 12},
    ]
    assert files.read(id_of(data)) == data


def test_an_image_that_is_to_be_a_file_is_kept_verbatim(files: FileAttachments) -> None:
    data = encoded(picture(), "PNG", dpi=(300, 300))

    (ref,) = admit([Source(data, "scan.png", "image/png", kind="file")], files)

    assert ref == {"attachmentId": id_of(data), "name": "scan.png", "bytes": len(data)}
    assert files.read(id_of(data)) == data


def test_an_empty_file_is_a_file(files: FileAttachments) -> None:
    (ref,) = admit([Source(b"", "empty.txt")], files)

    assert ref["bytes"] == 0


def test_an_image_is_recognised_without_a_declared_type(files: FileAttachments) -> None:
    (ref,) = admit([Source(png(), media_type="application/octet-stream")], files)

    assert ref["mediaType"] == "image/png"


def test_the_same_image_twice_is_two_references_and_one_object(files: FileAttachments) -> None:
    first, second = admit([png_source(), png_source()], files)

    assert first == second
    assert files.sizes().count == 1


@pytest.mark.parametrize("declared", ["image/png", "image/webp", "text/plain"])
def test_a_wrong_declared_type_is_corrected_and_reported(
    files: FileAttachments, declared: str
) -> None:
    notices: list[Notice] = []
    source = Source(encoded(picture(), "JPEG"), "shot.png", declared)

    (ref,) = admit([png_source(), source], files, notify=notices.append)[1:]

    assert ref["mediaType"] == "image/jpeg"
    assert [(notice.index, notice.code) for notice in notices] == [(1, "type-corrected")]
    assert declared in notices[0].text
    assert "image/jpeg" in notices[0].text


def test_a_wrong_declared_type_is_refused_if_so_set(files: FileAttachments) -> None:
    source = Source(encoded(picture(), "JPEG"), "shot.png", "image/png")

    (refusal,) = refusals_of([source], files, AdmissionLimits(wrong_type="refuse"))

    assert (refusal.index, refusal.name, refusal.code) == (0, "shot.png", "type")
    assert "'image/png'" in refusal.reason
    assert "image/jpeg" in refusal.reason


@pytest.mark.parametrize("declared", ["image/jpg", "IMAGE/JPEG", "image/jpeg; q=1", "image/pjpeg"])
def test_another_spelling_of_a_type_is_not_wrong(files: FileAttachments, declared: str) -> None:
    source = Source(encoded(picture(), "JPEG"), media_type=declared)

    (ref,) = admit([source], files, AdmissionLimits(wrong_type="refuse"))

    assert ref["mediaType"] == "image/jpeg"


@pytest.mark.parametrize("format_", TRUNCATED)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_image_is_refused(files: FileAttachments, format_: str, share: float) -> None:
    whole = TRUNCATED[format_]
    source = Source(whole[: int(len(whole) * share)], media_type=f"image/{format_.lower()}")

    (refusal,) = refusals_of([source], files)

    assert refusal.code == "undecodable"
    assert files.sizes().count == 0


def test_a_png_with_a_flipped_bit_is_refused(files: FileAttachments) -> None:
    data = bytearray(TRUNCATED["PNG"])
    data[len(data) // 2] ^= 1

    (refusal,) = refusals_of([Source(bytes(data))], files)

    assert refusal.code == "undecodable"


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a"]
)
def test_what_is_declared_an_image_and_is_none_is_refused(
    files: FileAttachments, data: bytes
) -> None:
    (refusal,) = refusals_of([Source(data, "x.svg", "image/svg+xml")], files)

    assert refusal.code == ("undecodable" if data else "empty")


@pytest.mark.parametrize(("width", "height"), [(60_000, 60_000), (10_000, 6_000)])
def test_a_bomb_is_refused_by_its_header(files: FileAttachments, width: int, height: int) -> None:
    (refusal,) = refusals_of([Source(bomb(width, height), "bomb.png")], files)

    assert refusal.code == "pixels"
    assert files.sizes().count == 0


@pytest.mark.parametrize(
    ("limits", "code", "said"),
    [
        (AdmissionLimits(max_image_bytes=100), "too-large", "100 are the most for one image"),
        (AdmissionLimits(decode=DecodeLimits(max_pixels=3_071)), "pixels", "64 x 48 pixels, 3071"),
        (AdmissionLimits(decode=DecodeLimits(max_edge=63)), "edge", "64 x 48 pixels, 63 on a side"),
    ],
)
def test_an_image_over_a_limit_is_refused_with_both_numbers(
    files: FileAttachments, limits: AdmissionLimits, code: str, said: str
) -> None:
    (refusal,) = refusals_of([png_source("a.png")], files, limits)

    assert refusal.code == code
    assert said in refusal.reason
    assert str(refusal).startswith("attachment 1 ('a.png'): ")


def test_an_image_at_every_limit_is_admitted(files: FileAttachments) -> None:
    decode = DecodeLimits(max_pixels=64 * 48, max_edge=64, max_frames=1)
    limits = AdmissionLimits(
        max_images=1,
        max_image_bytes=len(png()),
        max_total_bytes=len(png()),
        decode=decode,
        stored_edge=64,
        stored_bytes=len(png()),
    )

    (ref,) = admit([png_source()], files, limits)

    assert ref["width"] == 64


@pytest.mark.parametrize(
    ("limits", "code", "said"),
    [
        (AdmissionLimits(max_images=2), "too-many", "3 images, 2 are the most"),
        (AdmissionLimits(max_files=0), "too-many", "1 files, 0 are the most"),
        (AdmissionLimits(max_total_bytes=10), "too-large", "bytes, 10 are the most"),
    ],
)
def test_a_batch_over_a_limit_is_refused_as_such(
    files: FileAttachments, limits: AdmissionLimits, code: str, said: str
) -> None:
    sources = [png_source(), png_source(), png_source(), Source(b"note")]

    (refusal,) = refusals_of(sources, files, limits)

    assert (refusal.index, refusal.code) == (None, code)
    assert said in refusal.reason


def test_every_source_at_fault_is_named_and_nothing_is_stored(files: FileAttachments) -> None:
    sources = [
        png_source("good.png"),
        Source(TRUNCATED["JPEG"][:500], "cut.jpg"),
        Source(b"text", "note.txt"),
        Source(animated("GIF"), "dance.gif"),
    ]
    limits = AdmissionLimits(decode=DecodeLimits(animation="refuse"))

    found = refusals_of(sources, files, limits)

    assert [(refusal.index, refusal.name, refusal.code) for refusal in found] == [
        (1, "cut.jpg", "undecodable"),
        (3, "dance.gif", "frames"),
    ]
    assert files.sizes().count == 0


def test_an_empty_batch_is_admitted(files: FileAttachments) -> None:
    assert admit([], files) == []


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(AttachmentError, match="max_images is -1"):
        AdmissionLimits(max_images=-1)


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        (None, None),
        ("", None),
        ("/", None),
        ("/home/me/private/cat.png", "cat.png"),
        ("C:\\Users\\me\\cat.png", "cat.png"),
        ("../../etc/passwd", "passwd"),
        ("a\nb\x1b[31m.png", "a\ufffdb\ufffd[31m.png"),
        ("\ud800.png", "\ufffd.png"),
        ("Übersicht 図.png", "Übersicht 図.png"),
        ("é" * 200 + ".png", "é" * 125 + ".png"),
        ("x" * 300, "x" * 255),
    ],
)
def test_names_are_one_line_without_a_path(name: Any, clean: str | None) -> None:
    assert clean_name(name) == clean
