"""Arrays for PostgreSQL in its binary form, packed in one go.

The driver dumps a list item by item in Python; for a hundred events that was half of the time of an
append, and in text form it doubles the size of every state (docs/decisions/0011).
"""

import struct
from collections.abc import Sequence
from typing import ClassVar

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = struct.Struct("!iiIii")
_LENGTH = struct.Struct("!i")
_INT8 = struct.Struct("!q")
_SIZED_INT8 = struct.Struct("!iq")
_INT4 = struct.Struct("!i")

TEXT, BIG_INT, BLOB = 25, 20, 17
TEXTS, BIG_INTS, INTS, BLOBS = 1009, 1016, 1007, 1001
"""The types' numbers, which are the same on every server."""


class PackedArray(bytes):
    """The binary form of a one-dimensional array without nulls."""

    item_oid: ClassVar[int]


class Texts(PackedArray):
    """A `text[]`."""

    item_oid = 25


class Blobs(PackedArray):
    """A `bytea[]`."""

    item_oid = 17


class BigInts(PackedArray):
    """A `bigint[]`."""

    item_oid = 20


class Ints(PackedArray):
    """An `integer[]`."""

    item_oid = 23


def texts(values: Sequence[str]) -> Texts:
    """Return a `text[]` of these values."""
    return Texts(_packed(Texts.item_oid, [value.encode() for value in values]))


def blobs(values: Sequence[bytes]) -> Blobs:
    """Return a `bytea[]` of these values."""
    return Blobs(_packed(Blobs.item_oid, values))


def big_ints(values: Sequence[int]) -> BigInts:
    """Return a `bigint[]` of these values."""
    return BigInts(_packed(BigInts.item_oid, [_INT8.pack(value) for value in values]))


def ints(values: Sequence[int]) -> Ints:
    """Return an `integer[]` of these values."""
    return Ints(_packed(Ints.item_oid, [_INT4.pack(value) for value in values]))


def big_int(value: int) -> bytes:
    """Return a `bigint` in its binary form."""
    return _INT8.pack(value)


def unpacked_big_int(value: bytes) -> int:
    """Return the value of a `bigint` in its binary form."""
    number: int = _INT8.unpack(value)[0]
    return number


def unpacked_big_ints(array: bytes) -> list[int]:
    """Return the values of a `bigint[]` in its binary form, which holds no nulls."""
    return [value for _length, value in _SIZED_INT8.iter_unpack(array[_HEADER.size :])]


def _packed(item_oid: int, values: Sequence[bytes]) -> bytes:
    if not values:
        return struct.pack("!iiI", 0, 0, item_oid)
    parts = [_HEADER.pack(1, 0, item_oid, len(values), 1)]
    for value in values:
        parts.append(_LENGTH.pack(len(value)))
        parts.append(value)
    return b"".join(parts)


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: PackedArray) -> PackedArray:
        return obj


def _dumper(array_oid: int) -> type[_PackedDumper]:
    return type("_Dumper", (_PackedDumper,), {"oid": array_oid})


_ARRAY_OIDS: dict[type[PackedArray], int] = {
    Texts: TEXTS,
    Blobs: BLOBS,
    BigInts: BIG_INTS,
    Ints: INTS,
}


def register(connection: psycopg.Connection) -> None:
    """Let a connection take packed arrays as parameters."""
    for kind, array_oid in _ARRAY_OIDS.items():
        connection.adapters.register_dumper(kind, _dumper(array_oid))
