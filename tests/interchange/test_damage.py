"""Damage of any kind is refused, or did no harm; it never gets through half."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.importing import import_session
from everfold.projections.catalog import detached_composition
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.interchange.files import compressed, line
from tests.interchange.logs import LOGS, compaction, omission
from tests.interchange.old_files import compacted, small
from tests.interchange.test_round_trip import VALUES, exported, means

OLD = {f"version {version}": small(version).content() for version in (0, 1, 2)}
OLD["every reference"] = compacted().content()
SMALL = {name: make() for name, make in LOGS.items()} | OLD
JSON_TEXTS = st.sampled_from(
    ["-0", "1e400", "NaN", "[", "{}", "null", "[[0,9007199254740991]]", '"\\ud800"', "true", "1.5"]
)
Damage = Callable[[bytes], bytes]


@contextmanager
def empty_store() -> Iterator[SessionStore]:
    with open_store("sqlite://") as store:
        yield store


def check_import(content: bytes, store: SessionStore, *, repair: bool = False) -> None:
    """Import; a refusal leaves nothing, a success stores what can be exported."""
    try:
        result = import_session([content], store, detached_composition(), means(), repair=repair)
    except ImportRefusedError:
        assert list(store.streams()) == []
    else:
        assert exported(store, result.session_id).count(b"\n") == result.event_count + 1


@given(
    st.sampled_from(sorted(SMALL)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 10**6),
    st.integers(0, 40),
    st.binary(max_size=12),
)
@settings(max_examples=300)
def test_damaged_bytes_are_refused_or_do_no_harm(
    name: str, is_compressed: bool, repair: bool, place: int, length: int, put: bytes
) -> None:
    content = compressed(SMALL[name]) if is_compressed else SMALL[name]
    at = place % len(content)

    with empty_store() as store:
        check_import(content[:at] + put + content[at + length :], store, repair=repair)


def places(value: Json, path: tuple[Json, ...] = ()) -> Iterator[tuple[Json, ...]]:
    """Yield the path of every part of a value."""
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else items:
        yield from places(item, (*path, key))


def put_in(value: Json, path: tuple[Json, ...], new: Json) -> Json:
    """Return the value with another part at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put_in(copy[path[0]], path[1:], new)
    return copy


@given(st.sampled_from(sorted(SMALL)), st.integers(0, 10**6), st.integers(0, 10**6), VALUES)
@settings(max_examples=300)
def test_another_value_anywhere_is_refused_or_does_no_harm(
    name: str, number: int, place: int, new: Json
) -> None:
    lines = SMALL[name].splitlines(keepends=True)
    at = number % len(lines)
    value = json.loads(lines[at])
    paths = list(places(value))
    lines[at] = line(put_in(value, paths[place % len(paths)], new))

    with empty_store() as store:
        check_import(b"".join(lines), store)


@given(st.integers(0, 10**6), st.integers(0, 10**6), JSON_TEXTS)
def test_another_text_anywhere_is_refused_or_does_no_harm(
    number: int, place: int, new: str
) -> None:
    lines = (omission() + compaction()).splitlines(keepends=True)
    value = json.loads(lines[number % len(lines)])
    paths = list(places(value))
    marked = line(put_in(value, paths[place % len(paths)], "@here@"))
    lines[number % len(lines)] = marked.replace(b'"@here@"', new.encode())

    with empty_store() as store:
        check_import(b"".join(lines[: omission().count(b"\n")]), store)


@pytest.mark.parametrize("name", SMALL)
def test_a_refused_file_leaves_no_empty_session(name: str) -> None:
    content = SMALL[name]

    with empty_store() as store:
        for at in range(1, content.count(b"\n")):
            lines = content.splitlines(keepends=True)
            del lines[at - 1]
            with pytest.raises(ImportRefusedError):
                import_session([b"".join(lines)], store, detached_composition(), means())

        assert list(store.streams()) == []
