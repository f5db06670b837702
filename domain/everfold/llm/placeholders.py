"""The text that stands for images and files which a request does not carry (R255 to R259).

Each text is one line of printable characters, whatever an attachment's name holds. References come
from logs, so a field may be absent or of a wrong type; the text then says that it is unknown.
"""

import unicodedata
from collections.abc import Mapping
from typing import Any

MAX_NAME_LENGTH = 200
"""Characters of a name that are shown."""

_EXTENSIONS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
}
_DIGEST_PREFIX = "sha256:"
_SHORT_DIGEST_LENGTH = 8
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def image_extension(media_type: object) -> str:
    """Return the file extension of an image type with its dot; empty for a type that has none (R257)."""
    return _EXTENSIONS.get(media_type, "") if isinstance(media_type, str) else ""


def offloaded_image_text(attachment: Mapping[str, Any], path: str | None) -> str:
    """Return what the model reads instead of an image that was omitted for request limits (R256).

    Args:
        attachment: the image's reference.
        path: where the model's tools can read it now; None if nowhere.
    """
    said = f"[Image {_named(attachment)} was omitted to keep the request within its limits."
    if path is None:
        return f"{said} No path to it is available. It was {_image_facts(attachment)}.]"
    return (
        f"{said} It can be read, read-only, at {quoted(path, None)}: {_image_facts(attachment)}.]"
    )


def text_only_image_text(attachment: Mapping[str, Any]) -> str:
    """Return what a model that takes no images reads instead of any image (R258)."""
    name = attachment.get("name")
    named = f"{quoted(name)} " if isinstance(name, str) and name else ""
    return (
        f"[Image {named}{_short_id(attachment)}: {_image_facts(attachment)}; "
        "not shown, since this model reads text only.]"
    )


def file_handle_text(attachment: Mapping[str, Any], path: str | None) -> str:
    """Return what every model reads for an attached file (R259).

    Args:
        attachment: the file's reference.
        path: where the model's tools can read it now; None if nowhere.
    """
    said = f"[File {_named(attachment)}, {_size(attachment)}"
    if path is None:
        return f"{said}. No path to it is available.]"
    return f"{said}. It can be read, read-only, at {quoted(path, None)}.]"


def quoted(text: str, max_length: int | None = MAX_NAME_LENGTH) -> str:
    """Return text in double quotes on one line, with escapes for what is not printable.

    Quotes and backslashes are escaped too, so that a name cannot end its own quotation.
    """
    cut = max_length is not None and len(text) > max_length
    shown = text[:max_length] if cut else text
    return f'"{"".join(map(_escaped, shown))}{"…" if cut else ""}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if unicodedata.category(character) in _UNPRINTABLE:
        code = ord(character)
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return character


def _named(attachment: Mapping[str, Any]) -> str:
    """Return the quoted name and the id, or the id alone."""
    name = attachment.get("name")
    id_ = _printable(attachment.get("attachmentId"), "of unknown id")
    return f"{quoted(name)} ({id_})" if isinstance(name, str) and name else id_


def _short_id(attachment: Mapping[str, Any]) -> str:
    id_ = attachment.get("attachmentId")
    if not isinstance(id_, str):
        return "of unknown id"
    digest = id_.removeprefix(_DIGEST_PREFIX)[:_SHORT_DIGEST_LENGTH]
    return _printable(_DIGEST_PREFIX + digest, "of unknown id")


def _image_facts(attachment: Mapping[str, Any]) -> str:
    """Return type, extension, dimensions and size, as in `image/png (.png), 331x211 pixels, 1407 bytes`."""
    media_type = attachment.get("mediaType")
    extension = image_extension(media_type)
    type_ = _printable(media_type, "unknown type") + (f" ({extension})" if extension else "")
    width, height = attachment.get("width"), attachment.get("height")
    if not (_is_count(width) and _is_count(height)):
        return f"{type_}, {_size(attachment)}"
    return f"{type_}, {width}x{height} pixels, {_size(attachment)}"


def _size(attachment: Mapping[str, Any]) -> str:
    size = attachment.get("bytes")
    if not _is_count(size):
        return "unknown size"
    return "1 byte" if size == 1 else f"{size} bytes"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _printable(value: object, otherwise: str) -> str:
    if not isinstance(value, str) or not value:
        return otherwise
    return "".join(map(_escaped, value[:MAX_NAME_LENGTH]))
