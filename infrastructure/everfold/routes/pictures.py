"""The pictures of a request: their versions, fixed for ever, and their bytes as base64."""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from everfold.attachments.errors import VersionError
from everfold.attachments.ports import Version
from everfold.attachments.versions import VersionSpec
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.routes.counting import SentImage, offload_required
from everfold.routes.limits import RequestVersion
from everfold.routes.parts import ImagePart
from everfold.routes.text_only import attachment_of
from everfold.session.errors import SessionError

_Format = Literal["png", "jpeg", "webp"]
_FORMATS: Mapping[str, _Format] = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/webp": "webp",
}


class ImageVersions(Protocol):
    """Where request versions come from: `everfold.attachments.versions.RequestVersions`."""

    def version(self, ref: Mapping[str, Any], spec: VersionSpec) -> Version:
        """Return the version of an image for a route."""
        ...

    def read(self, version: Version) -> bytes:
        """Return a version's bytes, verified."""
        ...


@dataclass(frozen=True, slots=True)
class Picture:
    """A retained picture and the version of it that is sent."""

    part: ImagePart
    version: Version

    @property
    def encoded_bytes(self) -> int:
        """The length of its base64 text."""
        return -(-self.version.bytes // 3) * 4

    def sent(self, block: dict[str, Any] | None = None, is_inline: bool = True) -> SentImage:
        """Return what the checks count; `block` is the object of the body that holds it."""
        return SentImage(
            self.version.bytes,
            self.encoded_bytes if is_inline else 0,
            max(self.version.width, self.version.height),
            self.part.is_omittable,
            block,
            self.part,
        )


async def pictures_of(
    parts: Sequence[ImagePart], versions: ImageVersions, form: RequestVersion
) -> list[Picture]:
    """Return the version of each picture, made and recorded if it is the first time.

    Args:
        parts: the retained pictures, oldest first.

    Raises:
        LlmError: IMAGE_OFFLOAD_REQUIRED through one that does not decode or fit; UNSUPPORTED_CONTENT
            for one whose bytes are missing or damaged, since these may come back.
    """
    if not parts:
        return []
    return await asyncio.to_thread(_versions, parts, versions, form)


async def encoded(pictures: Sequence[Picture], versions: ImageVersions) -> list[str]:
    """Return the base64 text of each picture.

    Raises:
        LlmError: UNSUPPORTED_CONTENT for one whose bytes are missing or damaged.
    """
    if not pictures:
        return []
    return await asyncio.to_thread(
        lambda: [base64.b64encode(read_bytes(picture, versions)).decode() for picture in pictures]
    )


def read_bytes(picture: Picture, versions: ImageVersions) -> bytes:
    """Return the bytes that are sent of a picture.

    Raises:
        LlmError: UNSUPPORTED_CONTENT if they are missing or damaged.
    """
    try:
        return versions.read(picture.version)
    except SessionError as error:
        raise _unreadable(error, picture.part) from error


def data_url(picture: Picture, text: str) -> str:
    """Return a picture as a data URL; its type is that of the bytes, whatever the log says (A7)."""
    return f"data:{picture.version.media_type};base64,{text}"


def _versions(
    parts: Sequence[ImagePart], versions: ImageVersions, form: RequestVersion
) -> list[Picture]:
    spoilt: list[tuple[ImagePart, VersionError]] = []
    pictures = []
    for part in parts:
        try:
            pictures.append(Picture(part, _version(part, versions, form)))
        except VersionError as error:
            if not part.is_omittable:
                raise _unreadable(error, part) from error
            spoilt.append((part, error))
        except SessionError as error:
            raise _unreadable(error, part) from error
    if spoilt:
        last, reason = spoilt[-1]
        count = sum(part.is_omittable and part.at <= last.at for part in parts)
        places = tuple(part.place for part, _ in spoilt)
        failure = offload_required(str(reason), count).failure
        raise LlmError(replace(failure, at_fault=places)) from reason
    return pictures


def _version(part: ImagePart, versions: ImageVersions, form: RequestVersion) -> Version:
    attachment = attachment_of(part.block)
    spec = VersionSpec(None, form.max_edge, form.max_bytes)
    version = versions.version(attachment, spec)
    if version.media_type in form.media_types:
        return version
    format_ = _wanted(form.media_types)
    return versions.version(attachment, VersionSpec(format_, form.max_edge, form.max_bytes))


def _wanted(media_types: Sequence[str]) -> _Format:
    """Return the first format that a route takes and that can be made."""
    for kind in media_types:
        if kind in _FORMATS:
            return _FORMATS[kind]
    return "png"


def _unreadable(error: Exception, part: ImagePart) -> LlmError:
    text = f"an image cannot be sent: {error}; put its bytes back, or omit it"
    code = FailureCode.UNSUPPORTED_CONTENT
    return LlmError(LlmFailure(text, code, at_fault=(part.place,)))
