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
_INT4 = struct.Struct("!i")


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


_ARRAY_OIDS: dict[type[PackedArray], int] = {Texts: 1009, Blobs: 1001, BigInts: 1016, Ints: 1007}


def register(connection: psycopg.Connection) -> None:
    """Let a connection take packed arrays as parameters."""
    for kind, array_oid in _ARRAY_OIDS.items():
        connection.adapters.register_dumper(kind, _dumper(array_oid))
