"""Images with random damage: refused in our words or admitted, never anything else."""

from hypothesis import given
from hypothesis import strategies as st

from everfold.attachments.decoding import DecodeLimits, ImageFaultError
from everfold.attachments.rendering import Bounds, render
from tests.attachments.images import animated, encoded, exif, picture

CODES = ("undecodable", "pixels", "edge", "frames")
LIMITS = DecodeLimits()
BOUNDS = Bounds(max_edge=50, max_bytes=100_000)
WHOLE = [
    encoded(picture(), "PNG"),
    encoded(picture(), "JPEG", exif=exif(6)),
    encoded(picture(mode="RGBA"), "WEBP", exif=exif()),
    encoded(picture(), "BMP"),
    encoded(picture(), "JPEG2000"),
    animated("GIF"),
    animated("PNG"),
]


@given(
    whole=st.sampled_from(WHOLE),
    edits=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), min_size=1, max_size=5),
)
def test_a_damaged_image_is_refused_or_becomes_one_that_stays_as_it_is(
    whole: bytes, edits: list[tuple[float, bytes]]
) -> None:
    data = bytearray(whole)
    for place, octets in edits:
        start = int(place * len(data))
        data[start : start + len(octets)] = octets

    try:
        rendered = render(bytes(data), BOUNDS, LIMITS)
    except ImageFaultError as fault:
        code, again = fault.code, None
    else:
        code, again = "admitted", render(rendered.data, BOUNDS, LIMITS).data == rendered.data

    assert (code, again) in [("admitted", True), *((code, None) for code in CODES)]
