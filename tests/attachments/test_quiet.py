"""What Pillow warns of stays inside: admission refuses or takes a picture, and says so itself."""

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from PIL import Image

from everfold.attachments.admission import AdmissionLimits, Source, admit
from everfold.attachments.decoding import DecodeLimits
from everfold.attachments.errors import AdmissionError
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.quiet import quiet
from tests.attachments.images import animated, encoded, picture


def huge() -> bytes:
    """Return a PNG of 12,000 x 12,000 pixels as far as its header says."""
    head = struct.pack(">IIBBBBB", 12_000, 12_000, 8, 2, 0, 0, 0)
    whole = encoded(picture(), "PNG")
    chunk = b"IHDR" + head
    return whole[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + whole[33:]


def bad_animation() -> bytes:
    """Return an animated PNG that says that it has no frames, of which Pillow warns."""
    data = animated("PNG")
    place = data.index(b"acTL")
    chunk = b"acTL" + bytes(8)
    return data[:place] + chunk + struct.pack(">I", zlib.crc32(chunk)) + data[place + 16 :]


@contextmanager
def heard(action: str) -> Iterator[list[warnings.WarningMessage]]:
    """Record every warning of the process, as a host that set this action for all would get them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)  # type: ignore[arg-type]  # the names are checked when it runs
        yield found


def test_these_pictures_are_such_that_pillow_warns() -> None:
    for data in (huge(), bad_animation()):
        with heard("always") as found:
            Image.open(io.BytesIO(data))

        assert found


@pytest.mark.parametrize("action", ["always", "default", "error"])
def test_a_picture_of_too_many_pixels_is_refused_without_a_warning(
    files: FileAttachments, action: str
) -> None:
    with heard(action) as found, pytest.raises(AdmissionError, match="12000 x 12000 pixels"):
        admit([Source(huge(), "huge.png")], files)

    assert found == []


@pytest.mark.parametrize("action", ["always", "default", "error"])
def test_a_picture_that_pillow_warns_of_is_admitted_without_a_warning(
    files: FileAttachments, action: str
) -> None:
    with heard(action) as found:
        (ref,) = admit([Source(bad_animation(), "odd.png")], files)

    assert ref["mediaType"] == "image/png"
    assert found == []


def test_limits_beyond_pillows_own_warn_of_nothing(files: FileAttachments) -> None:
    limits = AdmissionLimits(decode=DecodeLimits(max_pixels=170_000_000))

    with heard("always") as found, pytest.raises(AdmissionError, match="damaged"):
        admit([Source(huge(), "huge.png")], files, limits)

    assert found == []


def test_warnings_of_other_threads_are_shown_meanwhile() -> None:
    other = threading.Thread(target=lambda: warnings.warn("from elsewhere", stacklevel=1))

    with heard("always") as found, quiet():
        other.start()
        other.join()
        warnings.warn("from here", stacklevel=1)

    assert [str(each.message) for each in found] == ["from elsewhere"]


def test_warnings_are_shown_again_afterwards(files: FileAttachments) -> None:
    with heard("always") as found:
        admit([Source(bad_animation(), "odd.png")], files)
        with quiet():
            warnings.warn("inside", stacklevel=1)
        warnings.warn("outside", stacklevel=1)

    assert [str(each.message) for each in found] == ["outside"]


def test_the_filters_do_not_grow(files: FileAttachments) -> None:
    with heard("always"):
        admit([Source(bad_animation(), "odd.png")], files)
        first = len(warnings.filters)
        for _ in range(3):
            warnings.simplefilter("always")
            admit([Source(bad_animation(), "odd.png")], files)

        assert len(warnings.filters) == first
