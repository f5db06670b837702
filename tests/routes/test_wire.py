"""A body written in pieces is the one that orjson writes whole."""

import asyncio
import hashlib
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from everfold.routes.wire import LISTED, Wire, items_json, wire_of

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
items = st.lists(st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2), max_size=5)
fields = st.lists(st.tuples(st.sampled_from("abcdef"), values), max_size=4)


def collected(wire: Wire) -> list[bytes]:
    async def read() -> list[bytes]:
        return [piece async for piece in wire]

    return asyncio.run(read())


@given(fields, fields, items, st.integers(0, 5))
def test_a_list_stands_in_a_body_wherever_it_is_wanted(
    before: list[Any], after: list[Any], listed: list[dict[str, Any]], cut: int
) -> None:
    body = {**dict(before), "list": LISTED, **dict(after)}
    first, rest = listed[:cut], listed[cut:]
    pieces = [items_json(first, is_first=True), items_json(rest, is_first=not first)]

    wire = wire_of(body, pieces)

    whole = orjson.dumps(
        {name: listed if value is LISTED else value for name, value in body.items()}
    )
    assert bytes(wire) == whole
    assert wire.size == len(whole)


@given(fields)
def test_a_body_without_a_list_is_written_whole(given_: list[Any]) -> None:
    assert bytes(wire_of(dict(given_), [b"{}"])) == orjson.dumps(dict(given_))


@given(st.lists(st.integers(0, 100_000).map(lambda size: b"x" * size), max_size=6))
def test_pieces_are_the_bytes_as_often_as_they_are_read(pieces: list[bytes]) -> None:
    wire, whole = Wire(pieces), b"".join(pieces)

    assert b"".join(collected(wire)) == whole
    assert b"".join(collected(wire)) == whole
    assert wire.digest() == hashlib.sha256(whole).digest()


def test_short_pieces_are_joined_and_long_ones_are_not_copied() -> None:
    long = b"y" * 100_000

    pieces = collected(Wire([b"a", b"b", long, b"c", b"", b"d"]))

    assert pieces == [b"ab", long, b"cd"]
    assert pieces[1] is long
