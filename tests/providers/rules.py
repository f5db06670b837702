"""What a strict provider refuses; every rule can be switched on by itself."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tests.providers.seen import Seen, SeenCall, SeenImage

Kind = Literal[
    "body", "count", "image", "dims", "type", "decode", "empty", "pairing", "id", "json",
    "window", "file", "signature", "no-images", "tool-images", "tools",
]  # fmt: skip

SIZE_KINDS = frozenset(("body", "count", "image", "dims", "decode"))
"""Violations that a rejection style may dress up; the others have the vendor's plain words."""


@dataclass(frozen=True)
class Rules:
    """The rules of a provider; each is off unless set.

    Attributes:
        max_body: bytes of the JSON body.
        max_images: pictures in a request.
        max_image_b64: encoded bytes of one picture.
        dims: no side over 8000 px, none over 2000 px once there are more than 20 pictures.
        pairing: each call answered in the next message, no orphan or second answer, ids unique.
        nonempty: no empty or blank text block, no empty message.
        magic: the declared media type equals the magic bytes.
        idre: tool-call ids are `[a-zA-Z0-9_-]`, 1 to 64 of them.
        max_id: most characters of a tool-call id.
        nine: tool-call ids are exactly 9 letters and digits.
        wellformed: the body is strict JSON in UTF-8: no NaN, no lone surrogate, no key twice.
        max_chars: characters of all texts, as a context window.
        cannot_decode: pictures with these bytes are refused.
        known_files: file ids must have been uploaded and not be gone.
        signatures: reasoning must carry one of these proofs.
        images: False for a model that takes none.
        tool_images: False for a wire that takes none in tool messages.
        declared: calls and answers need a tool list.
    """

    max_body: int | None = None
    max_images: int | None = None
    max_image_b64: int | None = None
    dims: bool = False
    pairing: bool = False
    nonempty: bool = False
    magic: bool = False
    idre: bool = False
    max_id: int | None = None
    nine: bool = False
    wellformed: bool = False
    max_chars: int | None = None
    cannot_decode: frozenset[bytes] = field(default=frozenset())
    known_files: bool = True
    signatures: frozenset[str] | None = None
    images: bool = True
    tool_images: bool = True
    declared: bool = False


STRICT = Rules(
    pairing=True, nonempty=True, magic=True, idre=True, wellformed=True, dims=True
)  # fmt: skip


@dataclass(frozen=True)
class Violation:
    """A broken rule.

    Attributes:
        path: what breaks it, in the vendor's notation.
        got: the size or number found, and `limit` the most allowed, where there are numbers.
    """

    kind: Kind
    path: str = ""
    got: int = 0
    limit: int = 0
    detail: str = ""


def json_fault(body: bytes) -> Violation | None:
    """Return why a body is not strict JSON in UTF-8."""
    try:
        text = body.decode()
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError as error:
        return Violation("json", detail=str(error))
    return None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("an object has a key twice")
    return dict(pairs)


def violations(rules: Rules, seen: Seen, size: int, files: frozenset[str]) -> Iterator[Violation]:
    """Yield the broken rules in the order in which a provider finds them."""
    if rules.max_body is not None and size > rules.max_body:
        yield Violation("body", got=size, limit=rules.max_body)
    yield from _contents(rules, seen, files)
    yield from _images(rules, seen)
    yield from _ids(rules, seen)
    if rules.pairing:
        yield from _pairs(seen)
    if rules.max_chars is not None and len(seen.all_text) > rules.max_chars:
        yield Violation("window", got=len(seen.all_text) // 4, limit=rules.max_chars // 4)


def _contents(rules: Rules, seen: Seen, files: frozenset[str]) -> Iterator[Violation]:
    if rules.nonempty:
        yield from (Violation("empty", text.path) for text in seen.texts if not text.text.strip())
        yield from (Violation("empty", path) for path in seen.empty_messages)
    if rules.declared and seen.calls and not seen.tools:
        yield Violation("tools", seen.calls[0].path)
    if rules.signatures is not None:
        for thought in seen.thoughts:
            if thought.signature not in rules.signatures:
                yield Violation("signature", thought.path)
    if rules.known_files:
        for image in seen.images:
            if image.file_id is not None and image.file_id not in files:
                yield Violation("file", image.path, detail=image.file_id)


def _images(rules: Rules, seen: Seen) -> Iterator[Violation]:
    images = seen.images
    if not rules.images and images:
        yield Violation("no-images", images[0].path)
    if not rules.tool_images:
        yield from (Violation("tool-images", i.path) for i in images if i.role == "tool")
    if rules.max_images is not None and len(images) > rules.max_images:
        yield Violation("count", got=len(images), limit=rules.max_images)
    for image in images:
        yield from _image(rules, image, many=len(images) > 20)


def _image(rules: Rules, image: SeenImage, many: bool) -> Iterator[Violation]:
    encoded = len(image.encoded)
    if rules.max_image_b64 is not None and encoded > rules.max_image_b64:
        yield Violation("image", image.path, encoded, rules.max_image_b64)
    if rules.dims:
        for limit in (8000, 2000) if many else (8000,):
            if image.edge > limit:
                yield Violation("dims", image.path, image.edge, limit)
    if rules.magic and image.encoded and image.true_type != image.media_type:
        detail = f"{image.media_type} {image.true_type}"
        yield Violation("type", image.path, detail=detail)
    if image.data in rules.cannot_decode:
        yield Violation("decode", image.path)


def _ids(rules: Rules, seen: Seen) -> Iterator[Violation]:
    tests: list[Callable[[str], bool]] = []
    if rules.idre:
        tests.append(lambda id_: re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id_) is not None)
    if rules.nine:
        tests.append(lambda id_: re.fullmatch(r"[a-zA-Z0-9]{9}", id_) is not None)
    for call in seen.calls:
        if not all(test(call.id) for test in tests):
            yield Violation("id", call.path, detail=call.id)
        elif rules.max_id is not None and len(call.id) > rules.max_id:
            yield Violation("id", call.path, len(call.id), rules.max_id, call.id)


def _pairs(seen: Seen) -> Iterator[Violation]:
    calls = [call for call in seen.calls if call.kind == "call"]
    answers = [call for call in seen.calls if call.kind == "answer"]
    twice = {call.id for call in calls if [c.id for c in calls].count(call.id) > 1}
    yield from (
        Violation("pairing", call.path, detail=call.id) for call in calls if call.id in twice
    )
    for call in calls:
        if [answer.id for answer in answers].count(call.id) != 1:
            yield Violation("pairing", call.path, detail=call.id)
    for answer in answers:
        if not any(_answers(answer, call, seen) for call in calls):
            yield Violation("pairing", answer.path, detail=answer.id)


def _answers(answer: SeenCall, call: SeenCall, seen: Seen) -> bool:
    """Tell whether an answer stands where the wire wants it: directly after its call."""
    if answer.id != call.id or answer.step <= call.step:
        return False
    if seen.wire == "messages":
        return answer.step == call.step + 1
    allowed = {c.step for c in seen.calls if seen.wire == "responses" or c.kind == "answer"}
    return all(step in allowed for step in range(call.step + 1, answer.step))
