"""Request versions of images: made once, then the same bytes for ever.

A route asks for a form of an image. The first time it is made and recorded beside the original;
from then on the recorded one is served, in every process and by every later encoder, so that bytes
that were sent to a provider do not change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from everfold.attachments.decoding import DecodeLimits, ImageFaultError
from everfold.attachments.errors import AttachmentCorruptError, AttachmentError, VersionError
from everfold.attachments.ids import AttachmentId, attachment_id, id_of
from everfold.attachments.ports import AttachmentStore, Version
from everfold.attachments.rendering import Bounds, render

_SIZE_LIMITS = DecodeLimits(max_pixels=2**28, max_edge=2**16, max_frames=2**16)
"""What old logs may hold; what is too large for a route is made smaller."""


@dataclass(frozen=True, slots=True)
class VersionSpec:
    """What a route takes.

    Attributes:
        format: the type it must have; None keeps the type where that is possible.
        max_edge: of the longer side, in pixels.
        max_bytes: of the encoded image, before any base64.
    """

    format: Literal["png", "jpeg", "webp"] | None = None
    max_edge: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.format not in {None, "png", "jpeg", "webp"}:
            raise AttachmentError(f"a version's format is png, jpeg or webp, not {self.format!r}")
        for name, value in (("max_edge", self.max_edge), ("max_bytes", self.max_bytes)):
            if value is not None and value < 1:
                raise AttachmentError(f"a version's {name} is at least 1, not {value}")

    @property
    def key(self) -> str:
        """The text under which stores record it; never to be changed."""
        return f"{self.format or 'any'}-{self.max_edge or 'any'}-{self.max_bytes or 'any'}"


class RequestVersions:
    """The versions of the images in one store.

    Safe for several threads and processes: of two that make one at once, the first wins and both
    serve its bytes.
    """

    def __init__(self, store: AttachmentStore) -> None:
        self._store = store

    def version(self, ref: Mapping[str, Any], spec: VersionSpec) -> Version:
        """Return the version of an image for a route; make and record it if it is the first time.

        Its media type is that of the bytes, whatever the reference says.

        Args:
            ref: an `ImageAttachmentRef`.

        Raises:
            AttachmentMissingError: the original is not stored.
            AttachmentCorruptError: it is damaged.
            VersionError: it does not decode, or cannot be made to fit.
        """
        original = attachment_id(ref.get("attachmentId"))
        return self._store.version(original, spec.key) or self._made(original, spec)

    def known(self, ref: Mapping[str, Any], spec: VersionSpec) -> Version | None:
        """Return the recorded version, None if it was never made; no image is read."""
        return self._store.version(attachment_id(ref.get("attachmentId")), spec.key)

    def read(self, version: Version) -> bytes:
        """Return a version's bytes, verified.

        Raises:
            AttachmentMissingError, AttachmentCorruptError: they are not there, or are damaged.
        """
        data = self._store.read(version.attachment_id)
        if len(data) != version.bytes:
            raise AttachmentCorruptError(
                version.attachment_id,
                "the record of a version",
                f"it says {version.bytes} bytes, there are {len(data)}",
            )
        return data

    def _made(self, original: AttachmentId, spec: VersionSpec) -> Version:
        data = self._store.read(original)
        bounds = Bounds(
            f"image/{spec.format}" if spec.format else None, spec.max_edge, spec.max_bytes
        )
        try:
            rendered = render(data, bounds, _SIZE_LIMITS)
        except ImageFaultError as fault:
            raise VersionError(original, fault.reason) from fault
        id_ = id_of(rendered.data)
        made = Version(
            id_, rendered.media_type, len(rendered.data), rendered.width, rendered.height
        )
        return self._store.record_version(
            original, spec.key, made, None if id_ == original else rendered.data
        )
