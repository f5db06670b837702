"""What an image becomes when it is admitted: one form, whatever it was."""

from typing import Any

import pytest
from PIL import Image, ImageCms

from everfold.attachments.admission import AdmissionLimits, Notice, Source, admit
from everfold.attachments.decoding import DecodeLimits
from everfold.attachments.errors import AdmissionError
from everfold.attachments.filesystem import FileAttachments
from tests.attachments.images import (
    SECRET,
    animated,
    encoded,
    exif,
    noise,
    opened,
    picture,
    png_text,
    wide_png,
    with_hole,
)

KEPT = {
    "image/png": encoded(picture(), "PNG"),
    "image/jpeg": encoded(picture(), "JPEG"),
    "image/webp": encoded(picture(), "WEBP", lossless=True),
    "image/gif": encoded(picture(), "GIF"),
}
CARRYING = {
    "png": encoded(picture(), "PNG", exif=exif(), pnginfo=png_text(), dpi=(72, 72)),
    "jpeg": encoded(picture(), "JPEG", exif=exif(), comment=SECRET),
    "progressive jpeg": encoded(picture(), "JPEG", progressive=True, exif=exif()),
    "restarting jpeg": encoded(picture(200, 90), "JPEG", restart_marker_blocks=2, exif=exif()),
    "webp": encoded(picture(), "WEBP", exif=exif()),
    "webp with alpha": encoded(picture(mode="RGBA"), "WEBP", exif=exif()),
    "lossless webp": encoded(picture(), "WEBP", lossless=True, exif=exif(), xmp=SECRET),
    "gif": encoded(picture(), "GIF", comment=SECRET),
    "tiff": encoded(picture(), "TIFF", exif=exif()),
    "turned jpeg": encoded(picture(), "JPEG", exif=exif(6)),
}


def admitted(
    store: FileAttachments, data: bytes, limits: AdmissionLimits | None = None
) -> tuple[dict[str, Any], bytes]:
    """Admit one image and return its reference and what is stored."""
    (ref,) = admit([Source(data)], store, limits)
    return ref, store.read(ref["attachmentId"])


@pytest.mark.parametrize("media_type", KEPT)
def test_the_four_types_stay_and_their_pixels_too(files: FileAttachments, media_type: str) -> None:
    data = KEPT[media_type]

    ref, stored = admitted(files, data)

    assert (ref["mediaType"], ref["width"], ref["height"]) == (media_type, 64, 48)
    assert ref["bytes"] == len(stored)
    assert opened(stored).format == opened(data).format
    assert opened(stored).convert("RGBA").tobytes() == opened(data).convert("RGBA").tobytes()


@pytest.mark.parametrize("what", CARRYING)
def test_no_metadata_is_stored(files: FileAttachments, what: str) -> None:
    data = CARRYING[what]
    assert SECRET in data

    _, stored = admitted(files, data)

    assert SECRET not in stored
    assert len(opened(stored).getexif()) == 0


@pytest.mark.parametrize("what", [name for name in CARRYING if name not in {"tiff", "turned jpeg"}])
def test_stripping_keeps_every_pixel(files: FileAttachments, what: str) -> None:
    _, stored = admitted(files, CARRYING[what])

    assert (
        opened(stored).convert("RGBA").tobytes() == opened(CARRYING[what]).convert("RGBA").tobytes()
    )


@pytest.mark.parametrize("media_type", KEPT)
def test_bytes_after_the_image_are_not_stored(files: FileAttachments, media_type: str) -> None:
    plain, _ = admitted(files, KEPT[media_type])

    with_tail, stored = admitted(files, KEPT[media_type] + b"<script>" + SECRET)

    assert SECRET not in stored
    assert with_tail == plain


@pytest.mark.parametrize("what", CARRYING)
def test_a_stored_image_that_is_attached_again_is_the_same_object(
    files: FileAttachments, what: str
) -> None:
    ref, stored = admitted(files, CARRYING[what])

    again, _ = admitted(files, stored)

    assert again == ref
    assert files.sizes().count == 1


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_the_orientation_is_applied(files: FileAttachments, orientation: int, format_: str) -> None:
    data = encoded(picture(), format_, exif=exif(orientation))

    ref, stored = admitted(files, data)

    assert (ref["width"], ref["height"]) == ((64, 48) if orientation < 5 else (48, 64))
    assert "originalDimensions" not in ref
    corner = {1: "left top", 2: "right top", 3: "right bottom", 4: "left bottom"} | {
        5: "left top",
        6: "right top",
        7: "right bottom",
        8: "left bottom",
    }
    x = 2 if "left" in corner[orientation] else ref["width"] - 3
    y = 2 if "top" in corner[orientation] else ref["height"] - 3
    pixel = opened(stored).convert("RGB").getpixel((x, y))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 200
    assert pixel[1] < 60


def test_a_large_image_is_scaled_and_says_what_it_was(files: FileAttachments) -> None:
    ref, stored = admitted(
        files, encoded(picture(900, 200), "PNG"), AdmissionLimits(stored_edge=300)
    )

    assert (ref["width"], ref["height"]) == opened(stored).size == (300, 67)
    assert ref["originalDimensions"] == {"width": 900, "height": 200}
    assert ref["mediaType"] == "image/png"


def test_the_original_dimensions_are_those_of_the_upright_image(files: FileAttachments) -> None:
    data = encoded(picture(800, 400), "JPEG", exif=exif(6))

    ref, _ = admitted(files, data, AdmissionLimits(stored_edge=100))

    assert (ref["width"], ref["height"]) == (50, 100)
    assert ref["originalDimensions"] == {"width": 400, "height": 800}


def test_a_very_flat_image_keeps_a_pixel_of_height(files: FileAttachments) -> None:
    ref, _ = admitted(files, encoded(picture(4000, 2), "PNG"), AdmissionLimits(stored_edge=100))

    assert (ref["width"], ref["height"]) == (100, 1)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (encoded(noise(300, 300), "PNG"), "image/jpeg"),
        (encoded(with_hole(noise(300, 300)), "PNG"), "image/webp"),
        (encoded(noise(300, 300), "JPEG", quality=98), "image/jpeg"),
        (encoded(noise(300, 300), "WEBP", lossless=True), "image/webp"),
        (encoded(noise(300, 300), "GIF"), "image/jpeg"),
    ],
)
def test_an_image_of_too_many_bytes_is_encoded_smaller(
    files: FileAttachments, data: bytes, media_type: str
) -> None:
    ref, stored = admitted(files, data, AdmissionLimits(stored_bytes=60_000))

    assert ref["bytes"] == len(stored) <= 60_000
    assert ref["mediaType"] == media_type
    assert ref["width"] == 300


def test_scaling_starts_when_quality_is_not_enough(files: FileAttachments) -> None:
    data = encoded(noise(300, 300), "JPEG", quality=98)

    ref, stored = admitted(files, data, AdmissionLimits(stored_bytes=9_000))

    assert len(stored) <= 9_000
    assert ref["width"] < 300
    assert ref["originalDimensions"] == {"width": 300, "height": 300}


def test_an_image_that_cannot_get_small_enough_is_refused(files: FileAttachments) -> None:
    with pytest.raises(AdmissionError, match="cannot be encoded in 50 bytes"):
        admitted(files, encoded(noise(300, 300), "PNG"), AdmissionLimits(stored_bytes=50))


@pytest.mark.parametrize(
    ("format_", "media_type"),
    [("BMP", "image/png"), ("TIFF", "image/png"), ("JPEG2000", "image/jpeg")],
)
def test_other_types_become_png_or_jpeg(
    files: FileAttachments, format_: str, media_type: str
) -> None:
    ref, stored = admitted(files, encoded(picture(), format_))

    assert ref["mediaType"] == media_type
    assert opened(stored).size == (64, 48)


def test_a_declared_bitmap_type_is_enough_for_weak_signatures(files: FileAttachments) -> None:
    source = Source(encoded(picture(), "PPM"), media_type="image/x-portable-pixmap")

    (ref,) = admit([source], files)

    assert ref["mediaType"] == "image/png"


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
@pytest.mark.parametrize("format_", ["PNG", "WEBP"])
def test_transparency_stays_through_scaling(
    files: FileAttachments, mode: str, format_: str
) -> None:
    data = encoded(picture(200, 100, mode), format_)

    _, stored = admitted(files, data, AdmissionLimits(stored_edge=100))

    pixel = opened(stored).convert("RGBA").getpixel((62, 31))
    assert isinstance(pixel, tuple)
    assert pixel[3] == 0


def test_transparency_of_a_palette_stays(files: FileAttachments) -> None:
    image = picture().quantize(16)
    data = encoded(image, "PNG", transparency=image.getpixel((1, 1)))

    _, stored = admitted(files, data, AdmissionLimits(stored_edge=32))

    pixel = opened(stored).convert("RGBA").getpixel((2, 2))
    assert isinstance(pixel, tuple)
    assert pixel[3] == 0


@pytest.mark.parametrize(("value", "grey"), [(0, 0), (0x8000, 128), (0xFFFF, 255)])
def test_sixteen_bits_become_eight_without_clipping(
    files: FileAttachments, value: int, grey: int
) -> None:
    _, stored = admitted(files, wide_png(value))

    image = opened(stored)
    shown = image.getpixel((3, 3))
    assert image.mode == "L"
    assert isinstance(shown, (int, float))
    assert abs(shown - grey) <= 1


def test_floating_point_greys_are_stretched_over_their_range(files: FileAttachments) -> None:
    image = Image.new("F", (4, 1), -5.0)
    image.putpixel((3, 0), 5.0)

    _, stored = admitted(files, encoded(image, "TIFF"))

    assert [opened(stored).getpixel((x, 0)) for x in range(4)] == [0, 0, 0, 255]


def test_cmyk_becomes_rgb(files: FileAttachments) -> None:
    ref, stored = admitted(files, encoded(picture(mode="CMYK"), "JPEG"))

    assert ref["mediaType"] == "image/jpeg"
    assert opened(stored).mode == "RGB"


def test_colours_of_a_profile_are_converted_before_it_is_dropped(files: FileAttachments) -> None:
    grey = Image.new("RGB", (8, 8), (200, 100, 50))
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    wrong_space = encoded(grey, "PNG", icc_profile=profile)
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

    _, kept = admitted(files, encoded(grey, "PNG", icc_profile=srgb))
    _, unusable = admitted(files, wrong_space)

    assert opened(kept).getpixel((1, 1)) == (200, 100, 50)
    assert opened(unusable).getpixel((1, 1)) == (200, 100, 50)
    assert "icc_profile" not in opened(kept).info


@pytest.mark.parametrize("format_", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animation_is_stored(files: FileAttachments, format_: str) -> None:
    notices: list[Notice] = []

    (ref,) = admit([Source(animated(format_))], files, notify=notices.append)

    stored = opened(files.read(ref["attachmentId"]))
    pixel = stored.convert("RGB").getpixel((20, 15))
    assert getattr(stored, "n_frames", 1) == 1
    assert stored.format == format_
    assert isinstance(pixel, tuple)
    assert [band > 127 for band in pixel] == [True, False, False]
    assert [notice.code for notice in notices] == ["first-frame"]
    assert "3 frames" in notices[0].text


@pytest.mark.parametrize("format_", ["GIF", "WEBP", "PNG", "TIFF"])
def test_animations_are_refused_if_so_set(files: FileAttachments, format_: str) -> None:
    limits = AdmissionLimits(decode=DecodeLimits(animation="refuse"))

    with pytest.raises(AdmissionError, match="3 frames; only still images"):
        admitted(files, animated(format_), limits)


def test_too_many_frames_are_refused(files: FileAttachments) -> None:
    limits = AdmissionLimits(decode=DecodeLimits(max_frames=4))

    with pytest.raises(AdmissionError, match="5 frames, 4 are the most"):
        admitted(files, animated("GIF", frames=5), limits)


def test_the_same_input_gives_the_same_bytes(files: FileAttachments) -> None:
    data = encoded(noise(120, 80), "TIFF")

    first, _ = admitted(files, data, AdmissionLimits(stored_edge=50))
    second, _ = admitted(files, data, AdmissionLimits(stored_edge=50))

    assert first == second
    assert files.sizes().count == 1
