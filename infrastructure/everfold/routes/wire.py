"""The bytes of a body, in pieces: what the requests of a conversation share is not copied for each."""

import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import orjson

LISTED = object()
"""Stands in a body for its long list."""

_WORTH_A_WRITE = 64 * 1024
"""Each piece is one write to the socket; shorter neighbours are joined."""


class Wire:
    """The bytes of a body exactly as they are sent; iterated as often as anybody likes.

    Attributes:
        size: how many bytes they are.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = tuple(_joined(pieces))
        self.size = sum(map(len, self._pieces))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces; HTTP clients take no other iteration for one that need not wait."""
        for piece in self._pieces:
            yield piece

    def __bytes__(self) -> bytes:
        return b"".join(self._pieces)

    def digest(self) -> bytes:
        """Return the SHA-256 of the bytes."""
        found = hashlib.sha256()
        for piece in self._pieces:
            found.update(piece)
        return found.digest()


def wire_of(body: Mapping[str, Any], pieces: Iterable[bytes] = ()) -> Wire:
    """Return the bytes of a body as orjson writes it.

    Args:
        body: may hold LISTED as the value of one of its keys.
        pieces: the items of the list that LISTED stands for, as JSON with commas between them.
    """
    place = next((at for at, value in enumerate(body.values()) if value is LISTED), None)
    if place is None:
        return Wire((orjson.dumps(body),))
    names = list(body)
    before = {name: body[name] for name in names[:place]}
    after = {name: body[name] for name in names[place + 1 :]}
    head = orjson.dumps({**before, names[place]: []}).removesuffix(b"]}")
    tail = b"]," + orjson.dumps(after).removeprefix(b"{") if after else b"]}"
    return Wire((head, *pieces, tail))


def items_json(items: Iterable[Mapping[str, Any]], *, is_first: bool) -> bytes:
    """Return items as they stand in a list: with commas between, and one before if others precede."""
    written = orjson.dumps(list(items))
    if written == b"[]":
        return b""
    return b"".join((b"" if is_first else b",", memoryview(written)[1:-1]))


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    short: list[bytes] = []
    for piece in pieces:
        if len(piece) < _WORTH_A_WRITE:
            short.append(piece)
            continue
        if short:
            yield b"".join(short)
            short = []
        yield piece
    if short:
        yield b"".join(short)
