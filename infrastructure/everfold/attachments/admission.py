"""The door for images and files: everything is checked before anything is stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from everfold.attachments.decoding import DecodeLimits, ImageFaultError, sniffed
from everfold.attachments.errors import AdmissionError, AttachmentError, Refusal
from everfold.attachments.ids import AttachmentId
from everfold.attachments.names import clean_name
from everfold.attachments.ports import AttachmentStore
from everfold.attachments.rendering import Bounds, Rendered, render

MIB = 1024 * 1024
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/apng": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/x-bmp": "image/bmp",
    "image/jpx": "image/jp2",
    "image/tif": "image/tiff",
    "image/x-portable-pixmap": "image/x-portable-anymap",
    "image/x-portable-graymap": "image/x-portable-anymap",
    "image/x-portable-bitmap": "image/x-portable-anymap",
}
_UNSAID = {"", "application/octet-stream", "binary/octet-stream"}
_UNNAMED_FILE = "file"

Ref = dict[str, Any]
"""An `ImageAttachmentRef` or a `FileAttachmentRef`, as it stands in a content block."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something to attach.

    Attributes:
        data: its bytes.
        name: its file name; of a path only the last part is kept.
        media_type: what it is said to be.
        kind: whether it is to be an image or a file; None decides by the declared type and the bytes.
    """

    data: bytes
    name: str | None = None
    media_type: str | None = None
    kind: Literal["image", "file"] | None = None


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """What may be attached at once, and what an image becomes.

    The stored form fits what known providers take without condition: no side over 2000 pixels even
    among many images, and 5 MiB of base64 for one image.

    Attributes:
        max_images, max_files: of one batch.
        max_total_bytes: of one batch, as it comes in.
        max_image_bytes, max_file_bytes: of one source, as it comes in.
        decode: what an image may be before it is made smaller.
        stored_edge: the longer side of a stored image, in pixels.
        stored_bytes: the most a stored image takes.
        wrong_type: what happens when the declared type of an image is not that of its bytes.
    """

    max_images: int = 20
    max_files: int = 20
    max_total_bytes: int = 128 * MIB
    max_image_bytes: int = 32 * MIB
    max_file_bytes: int = 64 * MIB
    decode: DecodeLimits = field(default_factory=DecodeLimits)
    stored_edge: int = 2_000
    stored_bytes: int = 3_932_160
    wrong_type: Literal["correct", "refuse"] = "correct"

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if isinstance(value, int) and value < 0:
                raise AttachmentError(f"admission limit {limit.name} is {value}, below 0")


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that admission changed about one source, for people to know.

    Attributes:
        index: place of the source in the batch, from 0.
        code: `type-corrected`, `first-frame`, `scaled`, `type-changed`.
        text: what was changed, in one sentence.
    """

    index: int
    code: str
    text: str


Notify = Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class _Admitted:
    data: bytes
    ref: Ref
    notices: tuple[Notice, ...] = ()


def admit(
    sources: Sequence[Source],
    store: AttachmentStore,
    limits: AdmissionLimits | None = None,
    *,
    notify: Notify = lambda _notice: None,
) -> list[Ref]:
    """Check and store a batch, whole or not at all, and return the references in its order.

    An image is stored in one normalised form: upright, in bounds, without metadata, as PNG, JPEG,
    WebP or GIF. A file is stored as it is.

    Args:
        notify: told what was changed, once everything is stored.

    Raises:
        AdmissionError: names every source at fault and why; nothing was stored.
        StoreError: the store failed; nothing is referred to.
    """
    limits = limits or AdmissionLimits()
    kinds = [_kind(source) for source in sources]
    refusals = [*_batch_refusals(sources, kinds, limits), *_size_refusals(sources, kinds, limits)]
    if refusals:
        raise AdmissionError(refusals)
    admitted = _examined(sources, kinds, limits)
    ids = store.put_all([item.data for item in admitted])
    for item in admitted:
        for notice in item.notices:
            notify(notice)
    return [_named(id_, item.ref) for id_, item in zip(ids, admitted, strict=True)]


def _named(id_: AttachmentId, ref: Ref) -> Ref:
    return {"attachmentId": id_, **ref}


def _kind(source: Source) -> Literal["image", "file"]:
    if source.kind is not None:
        return source.kind
    is_image = _declared(source).startswith("image/") or sniffed(source.data) is not None
    return "image" if is_image else "file"


def _declared(source: Source) -> str:
    """Return the declared type in its usual form; empty if nothing was declared."""
    said = (source.media_type or "").partition(";")[0].strip().lower()
    return "" if said in _UNSAID else _ALIASES.get(said, said)


def _batch_refusals(
    sources: Sequence[Source], kinds: Sequence[str], limits: AdmissionLimits
) -> list[Refusal]:
    total = sum(len(source.data) for source in sources)
    images, files = kinds.count("image"), kinds.count("file")
    found = (
        ("too-many", images, limits.max_images, "images"),
        ("too-many", files, limits.max_files, "files"),
        ("too-large", total, limits.max_total_bytes, "bytes"),
    )
    return [
        Refusal(None, None, code, f"the batch has {count} {what}, {most} are the most")
        for code, count, most, what in found
        if count > most
    ]


def _size_refusals(
    sources: Sequence[Source], kinds: Sequence[str], limits: AdmissionLimits
) -> list[Refusal]:
    refusals = []
    for index, (source, kind) in enumerate(zip(sources, kinds, strict=True)):
        size = len(source.data)
        most = limits.max_image_bytes if kind == "image" else limits.max_file_bytes
        if size > most:
            reason = f"it is {size} bytes, {most} are the most for one {kind}"
            refusals.append(Refusal(index, source.name, "too-large", reason))
        elif kind == "image" and not size:
            refusals.append(Refusal(index, source.name, "empty", "it is empty"))
    return refusals


def _examined(
    sources: Sequence[Source], kinds: Sequence[str], limits: AdmissionLimits
) -> list[_Admitted]:
    admitted: list[_Admitted] = []
    refusals: list[Refusal] = []
    for index, (source, kind) in enumerate(zip(sources, kinds, strict=True)):
        if kind == "file":
            admitted.append(_file(source))
            continue
        try:
            admitted.append(_image(index, source, limits))
        except ImageFaultError as fault:
            refusals.append(Refusal(index, source.name, fault.code, fault.reason))
    if refusals:
        raise AdmissionError(refusals)
    return admitted


def _file(source: Source) -> _Admitted:
    name = clean_name(source.name) or _UNNAMED_FILE
    return _Admitted(source.data, {"name": name, "bytes": len(source.data)})


def _image(index: int, source: Source, limits: AdmissionLimits) -> _Admitted:
    bounds = Bounds(max_edge=limits.stored_edge, max_bytes=limits.stored_bytes)
    rendered = render(source.data, bounds, limits.decode)
    declared = _declared(source)
    if declared not in {"", rendered.source_type} and limits.wrong_type == "refuse":
        raise ImageFaultError(
            "type", f"it is declared as {declared!r:.100}, but its bytes are {rendered.source_type}"
        )
    return _Admitted(
        rendered.data, _image_ref(source, rendered), tuple(_notices(index, declared, rendered))
    )


def _image_ref(source: Source, rendered: Rendered) -> Ref:
    ref: Ref = {
        "mediaType": rendered.media_type,
        "bytes": len(rendered.data),
        "width": rendered.width,
        "height": rendered.height,
    }
    name = clean_name(source.name)
    if name is not None:
        ref["name"] = name
    if _is_scaled(rendered):
        ref["originalDimensions"] = {
            "width": rendered.source_width,
            "height": rendered.source_height,
        }
    return ref


def _is_scaled(rendered: Rendered) -> bool:
    return (rendered.width, rendered.height) != (rendered.source_width, rendered.source_height)


def _notices(index: int, declared: str, rendered: Rendered) -> list[Notice]:
    source_type = rendered.source_type
    found = (
        (
            declared not in {"", source_type},
            "type-corrected",
            f"declared as {declared!r:.100}, its bytes are {source_type}",
        ),
        (rendered.frames > 1, "first-frame", f"the first of {rendered.frames} frames was taken"),
        (
            _is_scaled(rendered),
            "scaled",
            f"scaled from {rendered.source_width} x {rendered.source_height} "
            f"to {rendered.width} x {rendered.height} pixels",
        ),
        (
            rendered.media_type != source_type,
            "type-changed",
            f"stored as {rendered.media_type} instead of {source_type}",
        ),
    )
    return [Notice(index, code, text) for applies, code, text in found if applies]
